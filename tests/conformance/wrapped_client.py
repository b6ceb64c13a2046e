"""A client command for the suite that has Interlock inside: `wrapped_client COMMAND... URL`.

Starts Interlock with the suite's server URL as its only upstream, runs COMMAND with Interlock's URL in its place, and
ends with that command's exit code.
"""

from __future__ import annotations

import subprocess
import sys

from .legs import manifest, url_entry
from .processes import gateway


def main() -> int:
    *command, url = sys.argv[1:]
    with gateway(manifest(url_entry("http", url))) as running:
        code = subprocess.run([*command, running.url], check=False).returncode
        print(running.tail(), file=sys.stderr)
        return code


if __name__ == "__main__":
    raise SystemExit(main())
