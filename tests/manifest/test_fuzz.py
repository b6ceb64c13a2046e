"""Whatever stands in a file: a load ends, in bounded time and memory, and raises nothing."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.manifest.fields import DOCUMENT
from interlock.manifest.loading import Loaded, load
from interlock.manifest.shapes import RecordField

_NAMES = sorted(
    {*DOCUMENT.fields, *(n for f in DOCUMENT.fields.values() if isinstance(f, RecordField) for n in f.fields)}
)
_GOOD = b"schemaVersion: agent-routing/v1\nintegrationId: a.good\ntransports: {http: {endpoint: 'https://x/'}}\n"


def load_bytes(content: bytes) -> Loaded:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "interlock.yaml").write_bytes(content)
        return load(manifests=(), home=home, project_root=None, environ={"PATH": "/nowhere"}, managed_dir=home / "none")


_fragments = st.sampled_from(
    [
        *(f"{name}: " for name in _NAMES),
        "\n",
        "\n  ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "---\n",
        "...\n",
        "*a",
        "&a ",
        "!!x ",
        '"',
        "'",
        "|\n",
        ">\n",
        "? ",
        ": ",
        "# ",
        "%",
        "\t",
        "${X}",
        "\x00",
        "\ufeff",
        "\u2028",
        "auto",
        "1e999",
        "0x1",
        "-",
    ]
)
texts = st.lists(_fragments | st.text(max_size=4), max_size=40).map("".join)


@given(st.binary(max_size=400))
@example(b"\xef\xbb\xbf")
@example(b"? ? ? ?")
@example(b"!<")
@example(b"%TAG ! x")
@example(b'"\\UFFFFFFFF"')
@example(b"a: &b &c d")
@example(b"- !!float x")
@example(b"\x85---")
def test_bytes(content: bytes) -> None:
    load_bytes(content)


@given(texts)
def test_yaml_like_text(text: str) -> None:
    for problem in load_bytes(text.encode("utf-8", "surrogatepass")).problems:
        assert problem.line >= 0
        assert problem.what
        assert str(problem)


_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["auto", "https://x", "node"])
)
_trees = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(_NAMES), _trees, max_size=8))
def test_known_fields_with_any_values(tree: dict[str, object]) -> None:
    import json

    head = {
        "schemaVersion": "agent-routing/v1",
        "integrationId": "a.b",
        "transports": {"http": {"endpoint": "https://x"}},
    }
    load_bytes(json.dumps({**head, **tree}).encode())


@settings(max_examples=50)
@given(texts.filter(lambda text: "..." not in text))
def test_a_good_document_survives_its_neighbours(text: str) -> None:
    loaded = load_bytes(
        _GOOD + b"---\n" + text.encode("utf-8", "surrogatepass") + b"\n---\n" + _GOOD.replace(b"a.good", b"a.second")
    )
    if any(problem.code in ("not-utf8", "yaml-character") and not problem.line for problem in loaded.problems):
        return
    if "not-utf8" not in {problem.code for problem in loaded.problems}:
        assert {"good", "second"} <= set(loaded.gateway.servers)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"[" * 100_000, "too-deep"),
        (b"a:\n" + b"".join(b" " * i + b"- \n" for i in range(1, 200)), "too-deep"),
        (b"{a: " * 5_000, "too-deep"),
        (
            b"a: &a0 [x]\n"
            + b"".join(b"b%d: &a%d [%s]\n" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 10)) for i in range(1, 10)),
            "too-large",
        ),
        (b"x: y\n" * 30_000, "too-many"),
        (b"a" * 600_000, "too-large"),
        (b'"' * 300_001, "yaml-syntax"),
    ],
    ids=["flow depth", "block depth", "map depth", "laughs", "duplicates", "size", "quotes"],
)
def test_bounds(content: bytes, code: str) -> None:
    began = time.process_time()
    loaded = load_bytes(content)
    assert code in {problem.code for problem in loaded.problems}
    # Not a speed claim: a bound against work that grows faster than the file.
    assert time.process_time() - began < 30
    assert len(loaded.problems) < 200
