"""What a tool costs a model's context: an estimate of tokens, without a tokenizer among the dependencies.

Hosts send name, description and input schema of every tool that they offer eagerly (title and output schema are not
sent by any host that was measured), so those three are counted, as compact JSON. The estimate adds up what a byte-pair
encoding does to such text: about a token a word, more for long or joined words, half a token for each run of
punctuation. The weights are a least-squares fit of the relative error against the `o200k_base` encoding over half of
10,320 published tool definitions; on the other half the error is 2.5 % in the median, under 9.5 % for 95 of 100 tools
and under 15 % for 99; for whole servers it is 2 % in the median and under 9.5 % for 95 of 100. Other encodings differ
by more than that (how much for a given host's model is unknown), so these figures are for comparing and budgeting, not
for billing.
"""

from __future__ import annotations

import re

import msgspec

_WEIGHTS: tuple[tuple[re.Pattern[str], float], ...] = tuple(
    (re.compile(pattern), weight)
    for pattern, weight in (
        (r"[A-Za-z]+", 1.03),  # a word
        (r"(?<=[A-Za-z]{6})[A-Za-z]", 0.06),  # each letter of a word after its sixth
        (r"(?<=[a-z])[A-Z]", 0.93),  # the joint in camelCase
        (r"(?<=[A-Z])[A-Z]", 0.18),  # capitals are split more often
        (r"[0-9]{1,3}", 1.61),  # digits go in threes
        (r"[!-/:-@\[-`{-~]+", 0.49),  # a run of punctuation
        (r"[!-/:-@\[-`{-~]", 0.155),  # and each character of it
        (r"[\t-\r]+|  +", 0.73),  # white space other than one space, which belongs to the word after it
        (r"[^\x00-\x7f]", 0.69),  # anything beyond ASCII
    )
)
_BYTES_PER_TOKEN = 4.4
"""The mean over the same definitions; for what cannot be read as a tool."""


class _Sent(msgspec.Struct, omit_defaults=True):
    """The members that reach a model; their types are left open, because a broken tool has a cost as well."""

    name: object = None
    description: object = None
    input_schema: object = msgspec.field(default=None, name="inputSchema")


_decode = msgspec.json.Decoder(_Sent).decode


def tokens(raw: bytes) -> int:
    """Estimated context tokens of one tool definition (an entry of `tools`). Never raises; never less than 1."""
    try:
        # Decoded and encoded again: escapes and white space of the wire never reach the model.
        text = msgspec.json.encode(_decode(raw)).decode("utf-8", "replace")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return max(1, round(len(raw) / _BYTES_PER_TOKEN))
    return max(1, round(sum(weight * len(pattern.findall(text)) for pattern, weight in _WEIGHTS)))
