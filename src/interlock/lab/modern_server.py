"""A modern-only conformance fixture: 2026-07-28, and a refusal that says so for everything older.

python -m interlock.lab.modern_server --stdio | --http PORT
"""

from __future__ import annotations

import argparse

from interlock.lab.content import conformance_content
from interlock.lab.launch import add_transport_arguments, launch_of, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m interlock.lab.modern_server", description=__doc__)
    add_transport_arguments(parser, "modern")
    arguments = parser.parse_args()
    run(launch_of(arguments, "modern", conformance_content("interlock-lab-modern")))


if __name__ == "__main__":
    main()
