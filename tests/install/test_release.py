"""What is fetched is looked through before anything of it runs, and never looked for where this Interlock did not come from."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import __version__
from interlock.install import laying, look, origin, record, release, settings
from interlock.install.notice import notice
from interlock.install.origin import Origin
from interlock.install.places import Places, read_current

from .conftest import ROOT, Copy, Tree, run
from .index import ENTRY_POINTS, of_tree, serving, wheel

Files = dict[str, bytes]


@pytest.fixture(scope="module")
def whole(tree: Tree) -> Files:
    """Files of a release 99.0.0 that is in order."""
    source = tree("99.0.0")
    return {
        file.relative_to(source).as_posix(): file.read_bytes()
        for file in source.rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }


def saved(folder: Path, made: tuple[str, bytes]) -> str:
    path = folder / made[0]
    path.write_bytes(made[1])
    return str(path)


def test_a_release_that_is_in_order(whole: Files, tmp_path: Path) -> None:
    path = saved(tmp_path, wheel("interlock-gateway", "99.0.0", whole, (), ENTRY_POINTS))
    files = release.look_through(path, "99.0.0")
    assert set(files) == set(whole)
    assert release.look_through(path, "99.0") == files, "the same version, written otherwise"


def _without(name: str) -> Callable[[Files], Files]:
    return lambda files: {key: content for key, content in files.items() if key != name}


_OTHERS: dict[str, tuple[str, str, Callable[[Files], Files], str, str]] = {
    "another distribution": ("interlock-mcp", "99.0.0", dict, ENTRY_POINTS, "is interlock-mcp, and interlock-gateway was"),
    "another version": ("interlock-gateway", "98.0.0", dict, ENTRY_POINTS, "is version 98.0.0, and 99.0.0 was asked for"),
    "no version": ("interlock-gateway", "newest", dict, ENTRY_POINTS, "is version newest"),
    "no command line": (
        "interlock-gateway", "99.0.0", _without("interlock/cli/main.py"), ENTRY_POINTS, "lacks interlock/cli/main.py",
    ),
    "nothing to start": (
        "interlock-gateway", "99.0.0", _without("interlock/install/start.py"), ENTRY_POINTS, "interlock/install/start.py",
    ),
    "a stranger's package": (
        "interlock-gateway", "99.0.0", lambda _: {"interlock/__init__.py": b"", "interlock/door.py": b""}, ENTRY_POINTS,
        "has the name, but is not Interlock",
    ),
    "no entry point": ("interlock-gateway", "99.0.0", dict, "", "starts nothing as `interlock`"),
    "another entry point": (
        "interlock-gateway", "99.0.0", dict, "[console_scripts]\ninterlock = door:open\n", "starts door:open as `interlock`",
    ),
    "a version that it hides": (
        "interlock-gateway", "99.0.0", lambda files: files | {"interlock/__init__.py": b"__version__ = '1.0'\n"}, ENTRY_POINTS,
        "calls itself 1.0 in interlock/__init__.py",
    ),
    "no version inside": (
        "interlock-gateway", "99.0.0", lambda files: files | {"interlock/__init__.py": b"import os\n"}, ENTRY_POINTS,
        "calls itself nothing",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "version", "change", "entry_points", "words"), _OTHERS.values(), ids=_OTHERS)
def test_what_is_something_else_is_refused(
    whole: Files,
    tmp_path: Path,
    name: str,
    version: str,
    change: Callable[[Files], Files],
    entry_points: str,
    words: str,
) -> None:
    path = saved(tmp_path, wheel(name, version, change(whole), (), entry_points))
    with pytest.raises(release.NotOurs) as caught:
        release.look_through(path, "99.0.0")
    assert words in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + b"\0" * 18, b"not an archive"])
def test_what_is_no_wheel_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(release.NotOurs):
        release.look_through(saved(tmp_path, ("interlock_gateway-99.0.0-py3-none-any.whl", content)), "99.0.0")


def test_a_requirement_cannot_put_its_files_over_ours(tmp_path: Path) -> None:
    package = tmp_path / "interlock"
    package.mkdir()
    (package / "__init__.py").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    release.still_ours(str(tmp_path), {"interlock/__init__.py": empty})
    (package / "extra.py").write_bytes(b"")
    with pytest.raises(release.NotOurs, match="interlock/extra"):
        release.still_ours(str(tmp_path), {"interlock/__init__.py": empty})


def test_nothing_of_a_strangers_release_runs(
    clean: dict[str, str], interlock_home: Path, installed: Path, copy: Copy, tmp_path: Path
) -> None:
    """A package of our name that leaves a mark wherever it is imported, and asks for one that does so too."""
    before, mark = copy("0.0.1"), tmp_path / "ran"
    leaves = f"open({str(mark)!r}, 'w').close()\n".encode()
    with serving() as index:
        strange: Files = {
            f"interlock/{name}": leaves for name in ("__init__.py", "__main__.py", "cli/main.py", "build.py")
        }
        index.add(
            wheel("interlock-gateway", "99.0.0", strange | {"door.pth": b"import interlock\n"}, ("door",), ENTRY_POINTS)
        )
        index.add(wheel("door", "1.0", {"door.py": leaves}))
        environ = clean | index.environment() | {"PYTHONPATH": str(installed)}
        done = run([sys.executable, "-m", "interlock", "update", "--yes"], environ, 120)
        if "with pip was found" in done.stderr:
            pytest.skip(done.stderr)
        assert "door" not in index.asked, "what it asks for is not even fetched"
    assert (done.returncode, mark.exists()) == (8, False), done.stderr
    assert "has the name, but is not Interlock" in done.stderr
    assert "Nothing of it was run, and nothing was changed" in done.stderr
    current = read_current(Places(interlock_home))
    assert current is not None
    assert current.name == before


_URLS = [
    ("path", {"url": "file:///srv/src/interlock", "dir_info": {"editable": True}}, "/srv/src/interlock"),
    ("path", {"url": "file:///srv/a%20b/x-0.1.0.whl", "archive_info": {}}, "/srv/a b/x-0.1.0.whl"),
    ("archive", {"url": "https://u:hunter2@pkg.example/x.whl?sig=hunter2", "archive_info": {}}, "https://pkg.example/x.whl"),
    ("vcs", {"url": "https://hunter2@git.example/x.git", "vcs_info": {"vcs": "git", "commit_id": "0"}}, "https://git.example/x.git"),
    ("unknown", {"dir_info": {}}, ""),
    ("unknown", [], ""),
]  # fmt: skip


def dist(folder: Path, direct_url: object = None, installer: str | None = "pip") -> Path:
    """A package as an installer leaves it (PEP 376, PEP 610)."""
    package = folder / "interlock"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    info = folder / "interlock_gateway-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: interlock-gateway\nVersion: 0.1.0\n")
    (info / "RECORD").write_text("interlock/__init__.py,,\n")
    if installer is not None:
        (info / "INSTALLER").write_text(installer + "\n")
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps(direct_url))
    return package


@pytest.mark.parametrize(("kind", "direct_url", "place"), _URLS)
def test_what_was_not_installed_by_name_says_where_it_came_from(
    tmp_path: Path, kind: str, direct_url: object, place: str
) -> None:
    found = origin.of_package(dist(tmp_path, direct_url))
    assert (found.kind, found.place) == (kind, place)
    assert not found.from_index()
    assert "hunter2" not in found.no_updates()
    assert "`interlock update --lay`" in found.no_updates()
    assert origin.from_record(json.loads(json.dumps(found.as_dict()))) == found


@pytest.mark.parametrize(
    ("installer", "kind"),
    [("pip", "index"), ("uv", "index"), ("debian", "unknown"), ("conda", "unknown"), (None, "unknown")],
)
def test_only_an_installer_of_python_packages_knows_an_index(tmp_path: Path, installer: str | None, kind: str) -> None:
    assert origin.of_package(dist(tmp_path, installer=installer)).kind == kind


def test_a_checkout_and_a_bare_folder(tmp_path: Path) -> None:
    assert origin.here() == Origin("path", str(ROOT))
    (tmp_path / "interlock").mkdir()
    assert origin.of_package(tmp_path / "interlock") == origin.UNKNOWN


def test_an_installation_elsewhere_does_not_speak_for_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dist(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    (tmp_path / "other" / "interlock").mkdir(parents=True)
    assert origin.of_package(tmp_path / "other" / "interlock") == origin.UNKNOWN


@pytest.mark.parametrize(
    "value", [None, [], {}, {"kind": "index"}, {"kind": "moon", "place": ""}, {"kind": "index", "place": 1}]
)
def test_a_record_that_does_not_say_it_is_no_index(value: object) -> None:
    assert origin.from_record(value) == origin.UNKNOWN


def test_a_copy_remembers_where_it_came_from(interlock_home: Path, clean: dict[str, str], installed: Path) -> None:
    places = Places(interlock_home)
    name = laying.lay_self(interlock_home).name
    assert record.read(places.copy(name)).origin == Origin("path", str(ROOT))
    settings.keep(interlock_home, settings.Settings(updates=True))
    done = run([places.launcher, "update", "--yes"], clean)
    assert done.returncode == 8
    assert f"was installed from {ROOT}, so no package index is asked" in done.stderr
    laid = run([sys.executable, "-m", "interlock", "update", "--lay"], clean | {"PYTHONPATH": str(installed)})
    assert laid.returncode == 0, laid.stderr
    current = read_current(places)
    assert current is not None
    assert record.read(places.copy(current.name)).origin == Origin("index")


@pytest.mark.parametrize("arguments", [["--yes"], ["--version", "99.0.0", "--yes"]])
def test_from_a_checkout_nothing_is_asked_for(
    clean: dict[str, str], interlock_home: Path, tree: Tree, arguments: list[str]
) -> None:
    with serving() as index:
        index.add(of_tree(tree("99.0.0"), "99.0.0"))
        environ = clean | index.environment()
        done = run([sys.executable, "-m", "interlock", "update", *arguments], environ, 120)
        assert (done.returncode, index.asked) == (8, [])
        assert "Update it there, then run `interlock update --lay` from it" in done.stderr
        settings.keep(interlock_home, settings.Settings(updates=True))
        assert run([sys.executable, "-m", "interlock", "update", "--look"], environ, 120).returncode == 0
        assert index.asked == []
    assert look.read(interlock_home) == look.Seen()


def test_from_a_checkout_nothing_is_announced(interlock_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.keep(interlock_home, settings.Settings(updates=True))
    look.keep(Places(interlock_home), look.Seen(1.0, "99.0.0"))
    assert not look.wanted(interlock_home, {})
    assert notice(interlock_home, {}) is None
    monkeypatch.setattr(origin, "here", lambda: Origin("index"))
    assert look.wanted(interlock_home, {})
    assert notice(interlock_home, {}) == f"Interlock {__version__} is behind: 99.0.0 is out; `interlock update`"


def test_the_project_has_the_name_that_is_looked_for() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == release.DISTRIBUTION
    assert project["scripts"] == {"interlock": release.ENTRY_POINT}
    assert [name for name in release.NEEDED if not os.path.isfile(ROOT / "src" / name)] == []
