"""A sample of the bad input of `make soak`, and the second opinion that it is judged by."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from .cases import SIDES, case, sides
from .oracle import Due, answers, due

ROOT = Path(__file__).resolve().parents[2]
V = b'{"jsonrpc":"2.0",'


@pytest.mark.timeout(300)
async def test_a_sample_harms_nothing() -> None:
    """In a process of its own, as `make soak` runs it: the generator lifts Python's limit on long integers."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.badinput.run", "--count", "2000", "--seed", "2026", "--json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=ROOT,
    )  # fmt: skip
    said, _ = await process.communicate()
    lines = said.decode(errors="replace").splitlines()
    assert process.returncode == 0, "\n".join(lines[-30:])
    report = json.loads(lines[-1])
    assert report["failures"] == []
    assert report["exit_code"] == 0
    assert report["count"] == 2000
    assert report["canary_calls"] > 50
    assert {kind.partition(":")[0] for kind in report["kinds"]} == set(SIDES)
    assert sum(number for kind, number in report["kinds"].items() if kind.endswith("oversized")) == len(SIDES)


def test_cases_follow_from_their_seed_and_number() -> None:
    chosen = sides(1, 400)
    made = [case(1, number, side) for number, side in enumerate(chosen)]
    assert made == [case(1, number, side) for number, side in enumerate(sides(1, 400))]
    assert [each.side for each in made] == chosen
    assert made[4:] != [case(2, number, side) for number, side in enumerate(chosen)][4:]
    assert len({each.data for each in made}) > 250  # mutated answers share one template


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (V + b'"id":1,"method":"m"}', (Due.ANSWER, 1)),
        (b"\xef\xbb\xbf" + V + b'"id":"\\ud800","method":"m"}', (Due.ANSWER, "\ufffd")),
        (V + b'"id":1.0,"method":"m"}', (Due.ANSWER, 1)),
        (V + b'"method":"m"}', (Due.NOTHING, None)),
        (V + b'"id":1,"result":{}}', (Due.EITHER, None)),
        (V + b'"id":1,"method":"m","method":"n"}', (Due.EITHER, None)),
        (V + b'"id":1,"method":"m","params":' + b"[" * 300 + b"]" * 300 + b"}", (Due.EITHER, None)),
        (b"[]", (Due.EITHER, None)),
        (b"", (Due.ERROR, None)),
        (b"{}", (Due.ERROR, None)),
        (b"5", (Due.ERROR, None)),
        (V + b'"id":1,"method":"m","a":NaN}', (Due.ERROR, None)),
        (V + b'"id":1,"method":"\xff"}', (Due.ERROR, None)),
        (V + b'"id":null,"method":"m"}', (Due.ERROR, None)),
        (V + b'"id":[],"method":"m"}', (Due.ERROR, None)),
        (V + b'"id":1,"method":"a\\nb"}', (Due.ERROR, None)),
        (V + b'"id":1,"method":"m","result":{}}', (Due.ERROR, None)),
        (b'{"jsonrpc":"1.0","id":1,"method":"m"}', (Due.ERROR, None)),
        (V + b'"id":1}', (Due.ERROR, None)),
    ],
)
def test_what_is_due_to_a_client(data: bytes, expected: tuple[Due, object]) -> None:
    assert due(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (V + b'"id":7,"result":{}}', True),
        (V + b'"id":7.0,"result":{"a":"\xff\\ud800"}}', True),
        (V + b'"id":7,"error":{"code":1,"message":""}}', True),
        (V + b'"id":"7","result":{}}', None),
        (V + b'"id":8,"result":{}}', False),
        (V + b'"id":7,"result":[]}', False),
        (V + b'"id":7,"error":{"code":1}}', False),
        (V + b'"id":7,"result":{},"error":{}}', False),
        (V + b'"id":7,"method":"m","result":{}}', False),
        (V + b'"id":7,"result":{}', False),
    ],
)
def test_what_is_an_answer_of_a_server(data: bytes, expected: bool | None) -> None:
    assert answers(data, 7) is expected
