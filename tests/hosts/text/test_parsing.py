"""What a file says, where it stands, which liberties it takes, and in plain words what is wrong with it."""

from __future__ import annotations

import sys

import pytest

from interlock.hosts.text import jsonc, toml, yaml
from interlock.hosts.text.document import At, Damaged, Document

BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize("parse", [jsonc.parse, toml.parse, yaml.parse])
@pytest.mark.parametrize("content", [b"", BOM, b"\n", b"  \r\n"])
def test_an_empty_file_is_an_empty_object(parse: object, content: bytes) -> None:
    document = parse(content)  # type: ignore[operator]
    assert (document.value, dict(document.spots), document.bom) == ({}, {}, content == BOM)


def test_the_liberties_that_a_json_file_takes() -> None:
    document = jsonc.parse(BOM + b'{ "a": "//no", // yes\r\n  "b": [1, 2,\n ], /* x, } */ }')
    assert document.value == {"a": "//no", "b": [1, 2]}
    assert (document.bom, document.comment, document.trailing_comma) == (True, (1, 16), (2, 13))
    strict = jsonc.parse(b'{"a": ",]", "b": "/* */"}')
    assert (strict.bom, strict.comment, strict.trailing_comma, strict.duplicates) == (False, None, None, ())


def test_of_keys_that_stand_twice_the_last_counts() -> None:
    document = jsonc.parse(b'{"m": {"x": 1, "x": {"y": 2}},\n "m": {"z": {"q": 1, "q": 2}}}')
    assert document.value == {"m": {"z": {"q": 2}}}
    assert dict(document.spots) == {("m",): (2, 2), ("m", "z"): (2, 8), ("m", "z", "q"): (2, 22)}
    assert document.duplicates == ((("m", "x"), (1, 16)), (("m",), (2, 2)), (("m", "z", "q"), (2, 22)))
    document = yaml.parse(b"m:\n  x: 1\nm:\n  z: 2\n")
    assert document.value == {"m": {"z": 2}}
    assert dict(document.spots) == {("m",): (3, 1), ("m", "z"): (4, 3)}
    assert document.duplicates == ((("m",), (3, 1)),)


@pytest.mark.parametrize(
    ("document", "value", "spots"),
    [
        (jsonc.parse(b"[1]"), [1], {(0,): (1, 2)}),
        (jsonc.parse(b' "x"'), "x", {}),
        (yaml.parse(b"- a\n- b: 1\n"), ["a", {"b": 1}], {(0,): (1, 3), (1,): (2, 3), (1, "b"): (2, 3)}),
        (yaml.parse(b"text"), "text", {}),
        (yaml.parse(b"1: no\n~: 'x'\n"), {"1": "no", "~": "x"}, {("1",): (1, 1), ("~",): (2, 1)}),
        (
            toml.parse(BOM + b"a.b = 1\r\n[[c]]\r\nd = [2,\r\n 3]\r\n"),
            {"a": {"b": 1}, "c": [{"d": [2, 3]}]},
            {("a",): (1, 1), ("a", "b"): (1, 3), ("c",): (2, 3), ("c", 0): (2, 3), ("c", 0, "d"): (3, 1),
             ("c", 0, "d", 0): (3, 6), ("c", 0, "d", 1): (4, 2)},
        ),
    ],
)  # fmt: skip
def test_whatever_the_top_level_is(document: Document, value: object, spots: dict[tuple[str | int, ...], At]) -> None:
    assert document.value == value
    assert dict(document.spots) == spots


def test_below_names_places_from_there() -> None:
    for document in (
        jsonc.parse(b'{"a": {"b": {"c": [1]}}}'),
        toml.parse(b"a.b.c = [1]"),
        yaml.parse(b"a: {b: {c: [1]}}"),
    ):
        assert set(document.below("a", "b")) == {("c",), ("c", 0)}
        assert document.below("a", "b")[("c",)] == document.at("a", "b", "c")
        assert document.below("nothing") == {}
        assert document.at("nothing") is None


@pytest.mark.parametrize(
    ("text", "words", "at"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', "a comma is missing before this", (3, 3)),
        ("{'a': 1}", "single quotes", (1, 2)),
        ("{\"a\": 'x'}", "single quotes", (1, 7)),
        ("{“a”: 1}", "typographic quotation mark", (1, 2)),
        ("{a: 1}", "the key has no quotation marks", (1, 2)),
        ('{"a": x}', "word without quotation marks", (1, 7)),
        ('{"a": True}', "write `true`", (1, 7)),
        ('{"a": None}', "write `null`", (1, 7)),
        ('{"a": {\n  "b": 1\n', "the `{` of line 1, column 7 is not closed", (2, 9)),
        ('{"a": [1}', "a `}` stands where the `[` of line 1 is still open", (1, 9)),
        ('{"a": 1}\n}', "a `}` too much", (2, 1)),
        ('{"a": 1}\n{"b": 1}', "a second value begins here", (2, 1)),
        ('{"a" 1}', "a colon is missing", (1, 6)),
        ('{"a": }', "a value is missing before the `}`", (1, 7)),
        ('{"a": 1,, "b": 2}', "a comma too much", (1, 9)),
        ("[,]", "a comma too much", (1, 2)),
        ("{,}", "a comma too much", (1, 2)),
        ('{"a": "C:\\Users"}', "write `\\\\` for a backslash", (1, 10)),
        ('{"a": "x\n}', "a quotation mark is missing before the line ends", (1, 9)),
        ('{"a": "x}', "the text that begins here is not closed", (1, 7)),
        ('{"a": "\t"}', "a control character", (1, 8)),
        ('# x\n{"a": 1}', "a comment with `#`", (1, 1)),
        ('{"a": 1 /* x }', "the comment that begins here is not closed", (1, 9)),
        ('{\n<<<<<<< HEAD\n"a": 1\n=======\n"a": 2\n>>>>>>> theirs\n}', "a merge conflict", (2, 1)),
        ('{\u00a0"a": 1}', "invisible character (U+00A0)", (1, 2)),
        ('{"a": NaN}', "NaN, which JSON does not have", None),
        ("[" * 100_000, "nested too deeply", None),
    ],
)
def test_what_is_wrong_with_json(text: str, words: str, at: At | None) -> None:
    with pytest.raises(Damaged) as damaged:
        jsonc.parse(text.encode())
    assert words in damaged.value.why
    assert damaged.value.at == at


def test_a_number_that_python_refuses_to_read() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(4300)  # Python's own limit, whatever else in this process has set
    try:
        with pytest.raises(Damaged, match="a number that is too long"):
            jsonc.parse(b"1" * 5000)
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(
    ("text", "words", "at"),
    [
        ("a: 1", "a colon after a key", (1, 2)),
        ("a = 1\na = 2", "a second time", (2, 6)),
        ("[a]\n[a]", "a second time", (2, 3)),
        ("x = 1\na = True", "`true` and `false` are written small", (2, 5)),
        ('a = "C:\\Users"', "write the text in single quotes", (1, 10)),
        ("a = “x”", "typographic quotation mark", (1, 5)),
        ("[a", "a `]` is missing", None),
        ('{"a": 1}', "no braces around the whole file", (1, 1)),
        ("// x", "TOML wants `#`", (1, 1)),
        ("a =", "a value is missing", None),
        ('a = "x', "not closed", None),
        ("a = [1 2]", "a comma in it is missing", (1, 8)),
        ("a = 1 b = 2", "where the line should end", (1, 7)),
        ("a = 1\r\n<<<<<<< HEAD\r\n", "a merge conflict", (2, 1)),
        ("a = 9999-99-99", "", None),
    ],
)
def test_what_is_wrong_with_toml(text: str, words: str, at: At | None) -> None:
    with pytest.raises(Damaged) as damaged:
        toml.parse(text.encode())
    assert words in damaged.value.why
    assert at is None or damaged.value.at == at


@pytest.mark.parametrize(
    ("text", "words", "at"),
    [
        ("a:\n\t- b", "a tab stands here", (2, 1)),
        ("a: b: c", "a colon where none may stand", (1, 5)),
        ("a:\n  b: 1\n c: 2", "the indentation does not fit", (3, 2)),
        ("[1, 2", "a comma or a closing bracket is missing", (1, 6)),
        ('a: "x', "not closed", (1, 6)),
        ("a: @x", "needs quotation marks", (1, 4)),
        ("a: *x", "an alias", (1, 4)),
        ("a: &a [*a]", "an alias", (1, 8)),
        ("a: 1\n---\nb: 2", "a second document", (2, 1)),
        ("a: \x01", "a character stands here that YAML does not allow", (1, 4)),
        ("<<<<<<< HEAD\na: 1\n=======\n", "a merge conflict", (1, 1)),
        ("? [a]\n: b", "a key that is no plain text", (1, 3)),
        ("a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
            f"{each}: &{each} [{','.join(f'*{last}' for _ in range(10))}]\n" for last, each in zip("abcdefg", "bcdefgh", strict=True)
        ), "its aliases stand for more", (7, 31)),
    ],
)  # fmt: skip
def test_what_is_wrong_with_yaml(text: str, words: str, at: At | None) -> None:
    with pytest.raises(Damaged) as damaged:
        yaml.parse(text.encode())
    assert words in damaged.value.why
    assert words == "its aliases stand for more" or damaged.value.at == at


@pytest.mark.parametrize("parse", [jsonc.parse, toml.parse, yaml.parse])
@pytest.mark.parametrize(
    ("content", "words", "at"),
    [
        ('{"a": 1}'.encode("utf-16"), "UTF-16, as Windows PowerShell writes", (1, 1)),
        ('{"a": 1}'.encode("utf-16-be"), "UTF-16 without a byte order mark", (1, 1)),
        (b"\0" * 100, "nothing but NUL bytes", (1, 1)),
        (b'{"a": 1,\n \0}', "a NUL byte stands here", (2, 2)),
        (b'{"a":\n "\xe9"}', "no UTF-8", (2, 3)),
    ],
)
def test_files_that_are_no_utf8(parse: object, content: bytes, words: str, at: At) -> None:
    with pytest.raises(Damaged) as damaged:
        parse(content)  # type: ignore[operator]
    assert words in damaged.value.why
    assert damaged.value.at == at


@pytest.mark.parametrize("depth", [*range(380, 1000, 20), 3000, 100_000])
def test_depth_never_ends_the_program(depth: int) -> None:
    for parse, text in (
        (jsonc.parse, '{"a":' * depth + "1" + "}" * depth),
        (jsonc.parse, "[" * depth + "]" * depth),
        (toml.parse, "a = " + "[" * depth + "]" * depth),
        (yaml.parse, "[" * depth + "]" * depth),
    ):
        why, document = "", None
        try:
            document = parse(text.encode())
        except Damaged as damaged:
            why = damaged.why
        assert depth > 380 or document is not None
        assert depth < 420 or document is None or parse is toml.parse
        assert (document is None) == ("nested too deeply" in why)
        assert document is None or len(document.spots) == depth - (text[0] == "[")


def test_no_complaint_repeats_what_stands_in_the_file() -> None:
    secret = "gh" + "p_" + "B" * 36
    for parse, text in (
        (jsonc.parse, f'{{"a": "{secret}" "b": 1}}'),
        (jsonc.parse, f'{{"a": {secret}}}'),
        (toml.parse, f"a = {secret}"),
        (toml.parse, f'a = "{secret}"\na = "{secret}"'),
        (toml.parse, f'["{secret}"]\n["{secret}"]'),
        (yaml.parse, f"a: *{secret}"),
        (yaml.parse, f"a: !{secret}!x 1"),
        (yaml.parse, f"a: &{secret} &{secret} 1"),
        (yaml.parse, f"%TAG {secret} x\n---\na: !{secret}!y b\n"),
    ):
        with pytest.raises(Damaged) as damaged:
            parse(text.encode())
        assert secret not in damaged.value.why
