"""What a sealed requestState is good for: as often as it likes where nobody was asked, once where a person said yes."""

from __future__ import annotations

import pytest

from interlock.relay.rounds import Rounds, approval_params, approved
from interlock.wire import messages
from interlock.wire.messages import Raw, WireError

KEY = b"k" * 32


def rounds() -> Rounds:
    return Rounds(KEY, b"{}")


def test_an_approval_is_spent_by_its_first_use() -> None:
    here = rounds()
    one, other = here.new("state", "srv", "same", approved=True), here.new("state", "srv", "same", approved=True)
    here.spend(one)
    here.spend(other)  # two yeses to calls whose server sends the same state are two
    for spent in (one, other):
        with pytest.raises(WireError, match="used already"):
            here.spend(spent)


@pytest.mark.parametrize("purpose", ["state", "retry", "approve"])
def test_a_state_that_no_yes_stands_behind_is_no_approval(purpose: str) -> None:
    """It was sealed while the manifest let the tool run unasked."""
    here = rounds()
    with pytest.raises(WireError, match="no approval stands behind"):
        here.spend(here.new(purpose, "srv"))


def test_another_process_cannot_know_whether_an_approval_was_used() -> None:
    before, after = rounds(), rounds()  # the same key: Interlock was restarted, or two `connect` processes run
    with pytest.raises(WireError):
        after.spend(before.new("approve", "srv", approved=True))


@pytest.mark.parametrize(
    ("answer", "yes"),
    [
        ('{"action":"accept","content":{"approve":true}}', True),
        ('{"action":"accept","content":{}}', True),
        ('{"action":"accept"}', True),
        ('{"action":"accept","content":{"approve":false}}', False),
        ('{"action":"accept","content":{"approve":"false"}}', False),
        ('{"action":"accept","content":{"approve":null}}', False),
        ('{"action":"accept","content":{"approve":1}}', False),
        ('{"action":"Accept","content":{"approve":true}}', False),
        ('{"action":"decline","content":{"approve":true}}', False),
        ('{"content":{"approve":true}}', False),
        ("true", False),
    ],
)
def test_what_counts_as_a_yes(answer: str, yes: bool) -> None:
    assert approved(Raw(answer.encode())) is yes


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"to":"ann"}', '{"to":"ann"}'),
        ('{\n\t"to": "ann"\r\n}', '{  "to": "ann"  }'),
        ('{"to":"\u202enna","cc":"\u200b\U000e0041"}', r'{"to":"\u202enna","cc":"\u200b\udb40\udc41"}'),
        ('{"to":"\x7f\x9b2J"}', r'{"to":"\u007f\u009b2J"}'),
        ('{"to":"Zoë"}', '{"to":"Zoë"}'),
    ],
    ids=["plain", "white space", "reordered and hidden", "terminal codes", "letters"],
)  # fmt: skip
def test_the_person_sees_what_the_call_says(arguments: str, shown: str) -> None:
    params = messages.try_map(approval_params("srv/send", Raw(arguments.encode()))) or {}
    assert messages.try_str(params["message"]) == f"Interlock asks: may srv/send be called with {shown} ?"
