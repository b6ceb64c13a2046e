"""For each fault that the parsers name: what to do about it, in one sentence that names the line."""

from __future__ import annotations

import re

_BY_WORDS: tuple[tuple[str, str], ...] = (
    ("a comma after the last", "Remove the comma{in_line}."),
    ("a comma too much, or a value", "Remove the comma{in_line}, or write the value before it."),
    ("a comma too much", "Remove the comma{in_line}."),
    ("a comma is missing before", "Write a comma before what stands{in_line}, at the end of the member above."),
    ("a comma or a closing bracket", "Write the comma or the closing bracket that is missing before line {line}."),
    ("a comment with `//`; TOML", "Begin the comment{in_line} with `#`."),
    ("a comment with `#`", "Remove the comment{in_line}."),
    ("it has a comment", "Remove the comment{in_line}; this host takes plain JSON only."),
    ("the comment that begins here", "Close the comment{in_line} with `*/`, or remove it."),
    ("begins with a byte order mark", "Save the file as UTF-8 without a byte order mark (VS Code: Save with Encoding, `UTF-8`; in a "
     "shell: `sed -i '1s/^\\xEF\\xBB\\xBF//' FILE`)."),
    ("a merge conflict", "Keep one of the two versions from line {line} on, and delete the lines with `<<<<<<<`, `=======` and "
     "`>>>>>>>`."),
    ("single quotes; JSON", "Write `\"` for the single quotes{in_line}."),
    ("a typographic quotation mark", "Write `\"` for the typographic quotation marks{in_line}."),
    ("it has a key twice", "Remove the key{in_line}, or the earlier one of the same name."),
    ("stands here a second time", "Remove or rename the second one{in_line}."),
    ("is not closed: a quotation mark", "Write the quotation mark that is missing{in_line}."),
    ("a text is not closed", "Write the quotation mark that is missing{in_line}."),
    ("a text in quotation marks is not closed", "Write the quotation mark that is missing{in_line}; for a backslash write `\\\\`."),
    ("write the text in single quotes", "Write the text{in_line} in single quotes, or `\\\\` for each backslash."),
    ("a backslash inside of a text", "Write `\\\\` for each backslash{in_line}."),
    ("a control character", "Write the tab or control character{in_line} as an escape such as `\\t`, or delete it."),
    ("an invisible character", "Delete the invisible character{in_line}."),
    ("the key has no quotation marks", "Write the key{in_line} in double quotes."),
    ("here a key in quotation marks", "Write a key in double quotes{in_line}, or remove what stands there."),
    ("a word without quotation marks", "Write the word{in_line} in double quotes."),
    ("after the key a colon is missing", "Write a `:` after the key{in_line}."),
    ("after the key a `=` is missing", "Write a `=` after the key{in_line}."),
    ("a colon after a key", "Write `=` for the colon{in_line}."),
    ("a colon stands here", "Write the `{{` that is missing before line {line}, or remove the colon there."),
    ("a colon where none may stand", "Indent line {line} as its neighbours, or put the text with the colon in quotation marks."),
    ("a value is missing", "Write the value that is missing{in_line}."),
    ("the file ends, and the", "Write the closing bracket that is missing at the end of the file."),
    ("the file ends where a value", "Write the value at the end of the file, or empty the file."),
    ("too much: what it should close", "Remove the bracket{in_line}."),
    ("is still open", "Close the bracket that is named before line {line}."),
    ("closes what `{` opened", "Write a `}}` for the `]`{in_line}."),
    ("a second value begins here", "Remove everything from line {line} on, or put it inside of the first value."),
    ("a second document begins here", "Remove everything from the `---`{in_line} on."),
    ("is no JSON; write", "Write it as JSON{in_line}: {write}."),
    ("true` and `false` are written small", "Put the text{in_line} in quotation marks; `true` and `false` are written small."),
    ("no braces around the whole file", "Write TOML, not JSON: remove the brace{in_line} and write `key = value`."),
    ("here a key should stand", "Write `key = value`{in_line}, or remove what stands there."),
    ("something stands after the end", "Begin a new line{in_line} before what stands after the value."),
    ("the table's name is not closed", "Write the `]` that is missing{in_line}."),
    ("a list or an inline table is not closed", "Write the bracket or the comma that is missing{in_line}."),
    ("a tab stands here", "Write spaces for the tab{in_line}."),
    ("the key on the line before has no colon", "Write the colon on the line before line {line}, or indent it as its neighbours."),
    ("the indentation does not fit", "Indent line {line} as its neighbours."),
    ("begins with this character needs", "Put the text{in_line} in quotation marks."),
    ("UTF-8", "Save the file as UTF-8 (VS Code: Save with Encoding, `UTF-8`)."),
    ("nothing but NUL bytes", "Restore the file from a backup, or delete it."),
    ("it is empty", "Write `{{}}` into the file, or delete it."),
    ("it cannot be read: Permission denied", "Make the file readable for you: `chmod u+r FILE`."),
    ("it is no regular file", "Put a regular file there."),
    ("larger than any configuration", "Take what is no configuration out of the file."),
    ("nested too deeply", "Take the innermost objects out: no configuration is nested so deeply."),
    ("a number that is too long", "Shorten the number."),
    ("a number or a date that does not exist", "Correct the number or the date."),
)  # fmt: skip
"""The first whose words stand in the fault's."""
_WRITE = re.compile(r"write (`[^`]+`)")


def mend(why: str, line: int) -> str:
    """`why` is a fault in the words of the parsers or of reading; line 0: none is known."""
    written = _WRITE.search(why)
    for words, todo in _BY_WORDS:
        if words in why:
            said = todo.format(
                line=line, in_line=f" in line {line}" if line else "", write=written[1] if written else ""
            )
            return said.replace(" before line 0", "")
    return f"Correct line {line}." if line else "Correct the file."
