"""`interlock schema`: the JSON Schema of a manifest document, for editors."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from interlock.cli.common import OK

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "schema",
        help="print the JSON Schema of the manifest",
        description="Print the JSON Schema (2020-12) of one agent-routing/v1 document. Save it, and name "
        "it in the first "
        "line of a manifest so that editors complete and check it: # yaml-language-server: "
        "$schema=./interlock.schema.json",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.manifest.json_schema import schema

    print(json.dumps(schema(), indent=2))
    return OK
