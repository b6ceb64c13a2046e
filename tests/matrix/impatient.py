"""Runs Interlock's command line with one constant changed: a parked call waits for half a second, not for five minutes."""

from __future__ import annotations

import sys

from interlock.cli.main import main
from interlock.relay import parking

parking.PARK_SECONDS = 0.5

if __name__ == "__main__":
    sys.exit(main())
