"""Which files are meant by what a user names, in which order, and under which ids."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ecphoryrag.indexing import LeftOut, load_paths
from ecphoryrag.settings import IndexingSettings
from ecphoryrag.types import Document, Failure

SETTINGS = IndexingSettings()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"Text of {name}", encoding="utf-8")


def ids(*paths: str | Path) -> list[str]:
    return [item.id for item in load_paths(paths, SETTINGS) if isinstance(item, Document)]


def left_out(*paths: str | Path) -> dict[str, str]:
    return {item.source: item.reason for item in load_paths(paths, SETTINGS) if isinstance(item, LeftOut)}


def failed(*paths: str | Path) -> dict[str, str]:
    return {item.source: item.reason for item in load_paths(paths, SETTINGS) if isinstance(item, Failure)}


def test_a_folder_is_walked_in_order_and_its_files_are_named_from_it(here: Path) -> None:
    make(here, "docs/b.txt", "docs/a/z.md", "docs/a.txt", "docs/a/B.txt", "docs/ü/x")
    expected = ["a.txt", "b.txt", "a/B.txt", "a/z.md", "ü/x"]
    assert ids("docs") == ids(here / "docs") == ids("./docs/") == expected
    (first, *_) = load_paths(["docs"], SETTINGS)
    assert isinstance(first, Document)
    assert first.source == "docs/a.txt"


def test_a_named_file_is_called_by_its_path_from_the_working_folder(here: Path) -> None:
    make(here, "docs/a.txt", "docs/b.txt")
    assert ids("docs/a.txt", here / "docs" / "b.txt", "./docs/../docs/a.txt") == ["docs/a.txt", "docs/b.txt"]


def test_a_named_file_elsewhere_is_called_by_its_whole_path(
    here: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    make(elsewhere, "a.txt")
    assert ids(elsewhere / "a.txt") == [(elsewhere / "a.txt").as_posix()]
    assert ids(os.path.relpath(elsewhere / "a.txt", here)) == [(elsewhere / "a.txt").as_posix()]


def test_what_is_named_twice_is_taken_once(here: Path) -> None:
    make(here, "docs/a.txt", "docs/b.txt")
    assert ids("docs", "docs", "docs/a.txt") == ["a.txt", "b.txt"]
    assert ids("docs/a.txt", "docs") == ["docs/a.txt", "b.txt"]
    assert len(list(load_paths(["none", "none"], SETTINGS))) == 1


def test_hidden_files_and_folders_are_left_out_unless_named(here: Path) -> None:
    make(here, "docs/.env", "docs/.git/config", "docs/a.txt")
    assert ids("docs") == ["a.txt"]
    assert left_out("docs") == {"docs/.env": "hidden", "docs/.git": "hidden"}
    assert ids("docs/.env", "docs/.git") == ["docs/.env", "config"]


def test_ignored_files_are_left_out_with_the_pattern(here: Path) -> None:
    make(here, "a.log", "keep.log", "build/x.txt", "sub/a.txt", "sub/b.log", "sub/deep/only.txt", "sub/deep/build")
    (here / ".gitignore").write_text("# logs\n*.log\n\n!keep.log\nbuild/\n/sub/deep/only.txt\n", encoding="utf-8")
    assert ids(".") == ["keep.log", "sub/a.txt", "sub/deep/build"]
    rule = f"in {here.as_posix()}/.gitignore"
    assert left_out(".") == {
        ".gitignore": "hidden",
        "a.log": f"git-ignored: *.log {rule}",
        "build": f"git-ignored: build/ {rule}",
        "sub/b.log": f"git-ignored: *.log {rule}",
        "sub/deep/only.txt": f"git-ignored: /sub/deep/only.txt {rule}",
    }


def test_a_deeper_gitignore_decides_over_those_above(here: Path) -> None:
    make(here, "a.txt", "sub/a.txt", "sub/b.md", "sub/deep/a.txt", "sub/deep/b.md")
    (here / ".gitignore").write_text("*.txt\n", encoding="utf-8")
    (here / "sub/.gitignore").write_text("!a.txt\n*.md\n", encoding="utf-8")
    (here / "sub/deep/.gitignore").write_text("a.txt\n!b.md\n", encoding="utf-8")
    assert ids(".") == ["sub/a.txt", "sub/deep/b.md"]


def test_rules_above_the_named_folder_hold_up_to_the_root_of_the_repository(here: Path) -> None:
    make(here, "repo/docs/a.txt", "repo/docs/b.md", "repo/docs/c.tmp", "repo/.git/info/exclude")
    (here / ".gitignore").write_text("*.md\n", encoding="utf-8")  # outside of the repository: says nothing in it
    (here / "repo/.gitignore").write_text("*.txt\n", encoding="utf-8")
    (here / "repo/.git/info/exclude").write_text("*.tmp\n", encoding="utf-8")
    assert ids("repo/docs") == ["b.md"]
    make(here, "plain/docs/a.txt")
    (here / "plain/.gitignore").write_text("*.txt\n", encoding="utf-8")
    assert ids("plain/docs") == ["a.txt"]  # no repository, so nothing above the folder counts


def test_an_ignored_file_or_folder_that_is_named_is_taken(here: Path) -> None:
    make(here, "repo/.git/HEAD", "repo/build/out/a.txt", "repo/x.log")
    (here / "repo/.gitignore").write_text("build/\n*.log\n", encoding="utf-8")
    assert ids("repo") == []
    assert ids("repo/build", "repo/x.log") == ["out/a.txt", "repo/x.log"]
    assert ids("repo/build/out") == ["a.txt"]


def test_a_gitignore_that_cannot_be_used_is_said(here: Path) -> None:
    make(here, "docs/a.txt", "docs/b.log")
    (here / "docs/.gitignore").write_text("!\n*.log\n", encoding="utf-8")
    assert ids("docs") == ["a.txt"]
    assert list(failed("docs").values()) == ["not a valid git-ignore pattern: !"]


def test_links_are_not_followed(here: Path) -> None:
    make(here, "real/a.txt", "docs/b.txt")
    (here / "docs/link.txt").symlink_to(here / "real/a.txt")
    (here / "docs/folder").symlink_to(here / "real")
    (here / "docs/loop").symlink_to(here / "docs")
    (here / "docs/broken").symlink_to("nowhere")
    assert ids("docs") == ["b.txt"]
    assert set(left_out("docs").values()) == {"a symbolic link"}
    assert len(left_out("docs")) == 4
    assert left_out("docs/link.txt") == {
        "docs/link.txt": f"a symbolic link; name what it points to: {(here / 'real/a.txt').as_posix()}"
    }
    assert ids("docs/folder") == []


def test_pipes_in_a_folder_are_left_out(here: Path) -> None:
    make(here, "docs/a.txt")
    os.mkfifo(here / "docs/pipe")
    assert ids("docs") == ["a.txt"]
    assert left_out("docs") == {"docs/pipe": "not a regular file"}


def test_stores_are_no_documents(here: Path) -> None:
    make(here, "docs/a.txt", "docs/m.ecphory", "docs/m.ecphory-wal", "docs/m.ecphory-ledger", "docs/x.ecphory/in.txt")
    assert ids("docs") == ["a.txt", "x.ecphory/in.txt"]
    assert set(left_out("docs").values()) == {"a store of this program"}


@pytest.mark.parametrize("pattern", ["[z-a]", "!", "a[z-b]/*.txt"])
def test_a_pattern_that_is_none_is_said_and_the_others_hold(here: Path, pattern: str) -> None:
    make(here, "a.txt", "b.log")
    (here / ".gitignore").write_text(f"{pattern}\n*.log\nx\x0ca.txt\n", encoding="utf-8")
    (here / ".git").mkdir()
    assert ids(".") == ["a.txt"]
    assert failed(".") == {f"{here.as_posix()}/.gitignore:1": f"not a valid git-ignore pattern: {pattern}"}


def test_an_empty_path_is_not_the_working_folder(here: Path) -> None:
    make(here, "a.txt")
    assert ids("", "*.none") == []
    assert failed("") == {'""': "an empty path; name the working folder as ."}
    assert ids(".") == ids(Path()) == ["a.txt"]


def test_what_is_not_there_is_said(here: Path) -> None:
    make(here, "a.txt")
    assert failed("none", "none/*.txt", "a.txt/x", "nul\0") == {
        "none": "no such file or folder",
        "none/*.txt": "no file matches",
        "a.txt/x": "no such file or folder",
        "nul\0": "cannot be read: embedded null byte",
    }


def test_a_name_that_is_not_utf8_is_said(here: Path) -> None:
    try:
        Path(os.fsdecode(b"docs\xff.txt")).write_text("x", encoding="utf-8")
    except OSError:
        pytest.skip("the file system takes no such name")
    assert failed(".") == {"docs\\xff.txt": "its name is not valid UTF-8, so it makes no id; rename it"}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("docs/*.txt", ["docs/a.txt", "docs/b.txt"]),
        ("docs/?.txt", ["docs/a.txt", "docs/b.txt"]),
        ("docs/[!a].txt", ["docs/b.txt"]),
        ("docs/**/*.txt", ["docs/a.txt", "docs/b.txt", "docs/x/c.txt", "docs/x/y/d.txt"]),
        ("docs/**/y/*", ["docs/x/y/d.txt"]),
        ("docs/*/*.txt", ["docs/x/c.txt"]),
        ("d*/x/**", ["docs/x/c.md", "docs/x/c.txt", "docs/x/y/d.txt"]),
        ("**/c.*", ["docs/x/c.md", "docs/x/c.txt"]),
    ],
)
def test_a_glob_means_the_files_that_match(here: Path, pattern: str, expected: list[str]) -> None:
    make(here, "docs/a.txt", "docs/b.txt", "docs/x/c.txt", "docs/x/c.md", "docs/x/y/d.txt", "docs/.h.txt", "e/f.rst")
    assert ids(pattern) == expected


def test_a_glob_reports_what_it_matched_and_left_out(here: Path) -> None:
    make(here, "docs/a.txt", "docs/.h.txt", "docs/.env", "docs/i.txt")
    (here / "docs/.gitignore").write_text("i.txt\n", encoding="utf-8")
    assert ids("docs/*.txt") == ["docs/a.txt"]
    assert set(left_out("docs/*.txt")) == {"docs/.h.txt", "docs/i.txt"}


def test_a_name_with_glob_characters_means_itself_if_it_is_there(here: Path) -> None:
    make(here, "a[1].txt", "a1.txt")
    assert ids("a[1].txt") == ["a[1].txt"]


def test_the_count_is_known_beforehand(here: Path) -> None:
    make(here, "docs/a.txt", "docs/b.md", "docs/.h")
    (here / "docs/r.jsonl").write_text('{"text": "x"}\n' * 5, encoding="utf-8")
    assert load_paths(["docs", "docs/a.txt"], SETTINGS).count() == 7
    assert load_paths(["docs", "-"], SETTINGS).count() is None
