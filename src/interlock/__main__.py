"""`python -m interlock` is the same command as `interlock`."""

from __future__ import annotations

from interlock.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
