"""Every code of a problem that inventory can report: how bad it is, what it means, what to do.

Codes are stable: scripts and documentation name them. `found` makes a Problem of one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from interlock.hosts.declaration import Problem, Severity, Spot


class Code(NamedTuple):
    severity: Severity
    means: str
    todo: str


CODES: Final[dict[str, Code]] = {
    # Reading
    "file-unreadable": Code("problem", "The host cannot read the file.", "Correct the place that is named."),
    "entry-invalid": Code("problem", "The host refuses the entry.", "Correct the field that is named."),
    "merge-invalid": Code(
        "problem", "Two files are right by themselves, and what the host merges them into is not.",
        "Give one of the two entries another name.",
    ),
    "never-read": Code("problem", "The entry stands in a file that the host does not read.", "Move it to the file that is named."),
    "wrong-table": Code(
        "problem", "The entry stands under a key that the host does not look under.", "Rename the key to the one that is named.",
    ),
    "not-a-table": Code("problem", "The key that should hold servers holds something else.", "Write an object there."),
    "place-uncertain": Code(
        "warning", "It is not known whether this host, in this version, reads the file.",
        "Ask the host for its list of servers, or move the entry to a file that is certain.",
    ),
    "precedence-unknown": Code(
        "warning", "Two files name the server, and it is not known which of them the host runs.", "Remove one of the two.",
    ),
    "host-broken": Code("problem", "The host cannot read its main file, so nothing of it runs.", "Correct the place that is named."),
    "type-refused": Code("warning", "The host is reported to refuse the entry for its `type`.", "Remove `type`."),
    "headers-ignored": Code("warning", "The host has another field for headers, and sends nothing of this one.", "Use `http_headers`."),
    "home-as-project": Code("note", "A file in the home directory counts as a project's.", "Move its entries to the user's own file."),
    # Trust
    "project-untrusted": Code("warning", "The host leaves the project's file out until you trust the project.", "Trust it there."),
    "folder-untrusted": Code("warning", "The host starts no server in a folder that you have not trusted.", "Trust it in the host."),
    "not-approved": Code("warning", "The host waits for your approval before it starts the server.", "Approve it in the host."),
    "host-failed": Code(
        "warning", "Interlock could not read this host's files; the other hosts are complete.",
        "Report it, with the text of the failure.",
    ),
    # The same thing twice
    "duplicate-server": Code(
        "note", "The same server is declared for several hosts, each copy to be kept by hand.",
        "Keep it once: `interlock adopt --dry-run` shows how.",
    ),
    "same-command-twice": Code(
        "warning", "One host starts the same server twice: twice the processes, twice the tools in its context.",
        "Remove one of the two entries.",
    ),
    "also-direct": Code(
        "warning", "The host reaches the server past Interlock, so no policy of the manifest applies to it.",
        "Remove the direct entry: `interlock adopt --dry-run` shows how.",
    ),
    # Names
    "name-collision": Code(
        "warning", "Two tools get one name for the model, and one of them is lost or renamed.",
        "Give one of the servers a name that differs in more than punctuation.",
    ),
    "name-too-long": Code(
        "warning", "The name that the model is given is longer than the host takes: it is cut, or the tool is left out.",
        "Give the server a shorter name.",
    ),
    "name-never-starts": Code(
        "problem", "The host lists the server and never starts it, because of a character in its name.",
        "Use letters, digits, `-` and `_` only.",
    ),
    "name-reserved": Code("problem", "The host keeps this name for itself.", "Give the server another name."),
    "name-not-portable": Code(
        "note", "Other hosts change or misread this name.", "Use a small letter, then small letters, digits and `-`.",
    ),
    # Secrets
    "literal-secret": Code(
        "warning", "A secret stands in the file as plain text.",
        "Put it into an environment variable or a keychain and refer to it: `interlock import` does.",
    ),
    "placeholder-left": Code("warning", "An example's placeholder was never filled in.", "Put the real value there, by reference."),
    "file-writable-by-others": Code(
        "problem", "Another user of the machine can change what the host starts.", "chmod go-w FILE",
    ),
    # Fields
    "switch-ignored": Code(
        "problem", "A field that looks like a switch is ignored: the server STILL STARTS.", "Switch it off the way this host knows.",
    ),
    "field-ignored": Code("warning", "The host does not read this field.", "Remove it, or use the host's own field."),
    "transport-unsupported": Code(
        "problem", "The host does not speak this transport.", "Use another transport, or let Interlock stand between.",
    ),
    "sse-legacy": Code(
        "warning", "The SSE transport is obsolete and servers are dropping it.", "Use the server's streamable HTTP address.",
    ),
    # Commands
    "command-not-found": Code("problem", "The program is not there, so the server cannot start.", "Install it, or correct the path."),
    "command-not-on-gui-path": Code(
        "warning", "Started from the desktop, the host may not have the folder of this program on its PATH.",
        "Write the program's full path.",
    ),
    "command-relative": Code(
        "warning", "A relative path is looked up from wherever the host was started.", "Write the full path.",
    ),
    "cwd-missing": Code("problem", "The folder that the server is to start in is not there.", "Correct `cwd`."),
    "shim-without-cmd": Code(
        "warning", "On Windows this program is a batch file, which many hosts cannot start by itself.",
        "Start it through `cmd /c`.",
    ),
    "foreign-path": Code("warning", "A path of another operating system.", "Write the path as this machine has it."),
    "unpinned-package": Code(
        "warning", "Each start may fetch and run a newer version than the one that was looked at.", "Pin a version.",
    ),
    "npx-asks": Code(
        "note", "Without `-y` npx may wait for an answer that nobody can give.", "Add `-y` as the first argument.",
    ),
    # Variables
    "home-literal": Code("problem", "The host does not fill in `~`: it stays as it is.", "Write the full path."),
    "home-unknown": Code("note", "It is not known whether the host fills in `~`.", "Write the full path."),
    "variable-literal": Code(
        "problem", "The host does not fill in this reference: the server receives its text.", "Use this host's own way.",
    ),
    "variable-unset": Code("warning", "The variable is not set here.", "Set it where the host is started."),
    "variable-withheld": Code(
        "problem", "The host does not pass this variable on to servers.", "Name it in the entry.",
    ),
    # Addresses
    "plain-http": Code("warning", "What is said to another machine, secrets too, travels unencrypted.", "Use https."),
    "loopback-in-container": Code(
        "warning", "Inside of a container `localhost` is the container itself.", "Use host.docker.internal, or the host's address.",
    ),
    # The file's form
    "byte-order-mark": Code(
        "note", "The file begins with a byte order mark, which other hosts refuse.",
        "Save it as UTF-8 without one (VS Code: Save with Encoding, `UTF-8`).",
    ),
    "file-doubtful": Code(
        "note", "Whether the host reads this file depends on its version, or is disputed.", "Ask the host itself.",
    ),
    "duplicate-key": Code(
        "warning", "A key stands twice: the host takes the later, other hosts refuse the file.", "Remove one of the two.",
    ),
    "tolerance-unknown": Code(
        "note", "It is not known whether this host takes what stands there.", "Write plain JSON, and it cannot matter.",
    ),
    # Plugins, skills and rules
    "plugin-missing": Code("warning", "A plugin is switched on and not there.", "Install it again, or switch it off."),
    "plugin-manifest": Code("problem", "The plugin's manifest cannot be read.", "Update or reinstall the plugin."),
    "plugin-name": Code("problem", "The plugin's name is none that the format allows.", "Rename it."),
    "plugin-path": Code("problem", "The plugin names a file outside of itself.", "Do not use it before its author explains."),
    "plugin-servers": Code("problem", "A plugin's servers, or one of them, cannot be read.", "Update or reinstall the plugin."),
    "skill-no-frontmatter": Code("problem", "No host knows what the skill is for.", "Begin it with `---`, name, description, `---`."),
    "skill-yaml": Code("warning", "The skill's front matter is not valid YAML; some hosts skip it.", "Quote values that hold `: `."),
    "skill-name": Code("problem", "The skill's name is missing, not allowed, or not its folder's.", "Name it as its folder."),
    "skill-description": Code("problem", "Without a short description no model knows when to use the skill.", "Describe it."),
    "skill-compatibility": Code("problem", "The skill's `compatibility` is too long.", "Keep it below 500 characters."),
    "skill-metadata": Code("problem", "The skill's `metadata` is no table.", "Write it as a table."),
    "hidden-text": Code(
        "problem", "A file that the model reads has characters that a person does not see.", "Look at it in an editor that shows them.",
    ),
    # Asking the host
    "host-disagrees": Code(
        "warning", "The host itself says something else than its files.", "Believe the host; the reason is named where it is known.",
    ),
    "host-not-asked": Code("warning", "The host could not be asked, or did not say all.", "Install it, or see the reason."),
    "host-refuses": Code("problem", "The host does not take its own files: no server of it runs.", "Correct what it names."),
    "host-says": Code("note", "The host's own remark.", "Read it."),
    "host-wrote": Code("note", "The host changed a file of its own while it was asked.", "Nothing; Interlock did not write."),
}  # fmt: skip


def found(
    code: str,
    seen: str,
    *,
    why: str = "",
    todo: str = "",
    field: str = "",
    spot: Spot | None = None,
    severity: Severity | None = None,
) -> Problem:
    """A problem of this code; what is not given is the table's."""
    entry = CODES[code]
    return Problem(code, severity or entry.severity, seen, why or entry.means, todo or entry.todo, field, spot)


def completed(problem: Problem) -> Problem:
    """One that says nothing of its own about what to do has the table's words."""
    entry = CODES.get(problem.code)
    return problem if problem.todo or entry is None else replace(problem, todo=entry.todo)


def failed(label: str, error: Exception) -> Problem:
    """Interlock's own failure. Only its kind and place: its text may hold something from a file."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    where = f" at {traceback.tb_frame.f_code.co_name}:{traceback.tb_lineno}" if traceback is not None else ""
    return found("host-failed", f"{label}: {type(error).__name__}{where}.")
