"""A legacy-only conformance fixture: 2025-11-25, 2025-06-18, 2025-03-26 and, over `--sse`, 2024-11-05.

python -m interlock.lab.legacy_server --stdio | --http PORT | --sse PORT
"""

from __future__ import annotations

import argparse

from interlock.lab.content import conformance_content
from interlock.lab.launch import add_transport_arguments, launch_of, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m interlock.lab.legacy_server", description=__doc__)
    add_transport_arguments(parser, "legacy")
    arguments = parser.parse_args()
    run(launch_of(arguments, "legacy", conformance_content("interlock-lab-legacy")))


if __name__ == "__main__":
    main()
