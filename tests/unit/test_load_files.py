"""Bytes of files as text, and every way in which a file is not one."""

from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest

from ecphoryrag.errors import InputError, UnsupportedFormat
from ecphoryrag.indexing import load_paths
from ecphoryrag.indexing.files import decode, open_regular, refuse_by_name
from ecphoryrag.settings import IndexingSettings
from ecphoryrag.types import Document, Failure

TEXT = "Zoë said: 漢字 🦉\nand left."
SETTINGS = IndexingSettings()


def load_one(path: Path, settings: IndexingSettings = SETTINGS) -> Document:
    (loaded,) = load_paths([path], settings)
    assert isinstance(loaded, Document)
    return loaded


def failure_of(path: Path, settings: IndexingSettings = SETTINGS) -> str:
    (loaded,) = load_paths([path], settings)
    assert isinstance(loaded, Failure)
    assert loaded.source == path.as_posix()
    return loaded.reason


@pytest.mark.parametrize(
    ("bom", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_text_is_the_same_in_every_encoding_that_says_what_it_is(tmp_path: Path, bom: bytes, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes(bom + TEXT.encode(encoding))
    assert load_one(tmp_path / "a.txt").text == TEXT


def test_offsets_are_those_of_python_text_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\ntwo\rthree\n\r\nfour \xe2\x80\xa8 five\r")
    assert load_one(path).text == path.read_text(encoding="utf-8")
    assert "\r" not in load_one(path).text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \r\n\t\n", "blank"),
        (codecs.BOM_UTF8, "empty"),
        (b"caf\xe9 au lait", "not valid UTF-8: the bytes at offset 3"),
        (codecs.BOM_UTF8 + b"abc\xff", "not valid UTF-8: the bytes at offset 6"),
        (codecs.BOM_UTF16_LE + b"a\x00b", "not valid UTF-16"),
        (codecs.BOM_UTF16_LE + "\ud800x".encode("utf-16-le", "surrogatepass"), "not valid UTF-16"),
        (b"text\x00more", "NUL"),
        ("wide".encode("utf-16-le"), "without a byte order mark"),
        (codecs.BOM_UTF16_LE + "a\0b".encode("utf-16-le"), "NUL character at offset 1"),
        (b"%PDF-1.7 ...", "PDF is not yet supported"),
        (b"SQLite format 3\x00", "SQLite database is not yet supported"),
    ],
)
def test_what_is_not_text_fails_with_the_reason_and_alone(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "bad.txt").write_bytes(content)
    (tmp_path / "good.txt").write_text("Good.", encoding="utf-8")
    failed, good = load_paths([tmp_path], SETTINGS)
    assert isinstance(failed, Failure)
    assert reason in failed.reason
    assert failed.source.endswith("bad.txt")
    assert isinstance(good, Document)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.pdf", "PDF"),
        ("a.DOCX", "DOCX"),
        ("a.html", "HTML"),
        ("a.htm", "HTML"),
        ("a.png", "image"),
        ("a.zip", "arch"),
    ],
)
def test_known_formats_are_refused_by_name(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    path.write_text("It may look like text.", encoding="utf-8")
    reason = failure_of(path)
    assert kind in reason
    assert "not yet supported" in reason
    with pytest.raises(UnsupportedFormat):
        refuse_by_name(path)


def test_a_file_up_to_the_limit_goes_in_and_one_byte_more_does_not(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    settings = IndexingSettings(max_file_bytes=10)
    path.write_bytes(b"x" * 10)
    assert load_one(path, settings).text == "x" * 10
    path.write_bytes(b"x" * 11)
    assert "indexing.max_file_bytes" in failure_of(path, settings)


def test_a_hundred_megabytes_in_one_line_are_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "huge.txt").open("wb") as file:
        file.truncate(100 * 2**20)  # sparse; that it is binary would be seen only by reading it
    assert "too large" in failure_of(tmp_path / "huge.txt")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_an_unreadable_file_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret.txt"
    path.write_text("x", encoding="utf-8")
    path.chmod(0)
    assert failure_of(path) == "cannot be read: Permission denied"


def test_a_pipe_is_never_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a regular file"):
        open_regular(pipe)
    assert "not a regular file" in failure_of(pipe)


def test_a_file_that_became_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "target.txt").write_text("secret", encoding="utf-8")
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "target.txt")
    with pytest.raises(InputError, match="cannot be read"):
        open_regular(link)


def test_decoding_keeps_all_but_the_mark_and_the_line_ends() -> None:
    assert decode(codecs.BOM_UTF8 + "\ufeff\x0b\x85 \u2028".encode()) == "\ufeff\x0b\x85 \u2028"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that opens and cannot be read is Linux's")
def test_a_file_that_fails_while_it_is_read_fails_alone() -> None:
    assert failure_of(Path("/proc/self/mem")) == "cannot be read: Input/output error"
