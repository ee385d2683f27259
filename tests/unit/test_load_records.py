"""JSON, JSONL, standard input, and records handed over in Python."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ecphoryrag.errors import InputError
from ecphoryrag.indexing import Loaded, document_from, load_items, load_paths, load_stdin
from ecphoryrag.indexing.records import json_or_text
from ecphoryrag.settings import IndexingSettings
from ecphoryrag.settings.indexing import StdinFormat
from ecphoryrag.types import Document, Failure, Heading

SETTINGS = IndexingSettings()


def load(path: Path, content: str | bytes, settings: IndexingSettings = SETTINGS) -> list[Loaded]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(load_paths([path], settings))


def stdin(content: str | bytes, format: StdinFormat = "auto", limit: int = 2**20) -> list[Loaded]:
    stream = io.BytesIO(content.encode() if isinstance(content, str) else content)
    return list(load_stdin(stream, IndexingSettings(stdin_format=format, max_file_bytes=limit)))


def documents(loaded: list[Loaded]) -> Iterator[Document]:
    for item in loaded:
        assert isinstance(item, Document), item
        yield item


def test_a_record_is_id_title_text_and_the_rest_is_metadata(tmp_path: Path) -> None:
    (document,) = load(tmp_path / "a.jsonl", '{"id": "d", "title": "T", "text": "x", "n": 1, "in": {"a": [1, null]}}\n')
    assert document == Document("d", "x", "T", {"n": 1, "in": {"a": [1, None]}}, (), f"{tmp_path.as_posix()}/a.jsonl:1")


def test_without_an_id_the_content_hash_is_the_id(tmp_path: Path) -> None:
    one, two, three = documents(load(tmp_path / "a.jsonl", '{"text":"x"}\n{"text":"x","title":null}\n{"text":"y"}'))
    assert one.id == one.content_hash == two.id
    assert three.id != one.id


BAD_LINES = [
    ("nope", "not valid JSON"),
    ('{"text": "x"', "not valid JSON"),
    ("[1]", "not a record"),
    ("null", "not a record"),
    ('{"title": "x"}', 'no "text"'),
    ('{"text": null}', '"text" must be a string, not null'),
    ('{"text": 5}', '"text" must be a string, not a number'),
    ('{"text": ""}', "empty"),
    ('{"text": " \\n"}', "blank"),
    ('{"text": "x", "title": 5}', '"title" must be a string'),
    ('{"text": "x", "id": true}', '"id" must be a string or an integer'),
    ('{"text": "x", "id": " "}', '"id" is blank'),
    ('{"text": "x", "text": "y"}', "key 'text' twice"),
    ('{"text": "x", "m": {"a": 1, "a": 2}}', "key 'a' twice"),
    ('{"text": "x", "m": NaN}', '"m" is nan'),
    ('{"text": "x", "m": [-Infinity]}', '"m" is -inf'),
    ('{"text": "x", "m": 1e999}', '"m" is inf'),
    ('{"text": "x", "m": 1' + "0" * 30 + "}", '"m" is an integer of more than 64 bits'),
    ('{"text": "x", "m": 1' + "0" * 5000 + "}", "a number of thousands of digits; write it as a string"),
    ('{"text": "a\\ud800"}', "half of a surrogate pair at offset 1"),
    ('{"text": "x", "m": {"\\udc00": 1}}', "surrogate"),
    ('{"text": "a\\u0000"}', "NUL character at offset 1"),
    ('{"text": "x", "m": ' + "[" * 70 + "]" * 70 + "}", "nested more than 64"),
    ('{"text": "x", "m": ' + "[" * 100_000, "nested too deeply"),
    (b'{"text": "caf\xe9"}', "not valid UTF-8"),
    ('{"text": "x", "id": "' + "i" * 5000 + '"}', "the id has 5000 characters"),
    ('{"text": "x", "title": "' + "t" * 1001 + '"}', "the title has 1001 characters"),
    ('{"text": "x', "not valid JSON: Unterminated string starting at column 10"),
]


@pytest.mark.parametrize(("line", "reason"), BAD_LINES, ids=[reason for _, reason in BAD_LINES])
def test_a_bad_line_fails_alone_with_its_place(tmp_path: Path, line: str | bytes, reason: str) -> None:
    line = line.encode() if isinstance(line, str) else line
    before, failed, after = load(tmp_path / "a.jsonl", b'{"text":"before"}\n\n' + line + b'\r\n{"text":"after"}')
    assert isinstance(failed, Failure)
    assert failed.source == f"{tmp_path.as_posix()}/a.jsonl:3"
    assert reason in failed.reason
    assert [document.text for document in documents([before, after])] == ["before", "after"]


def test_numbers_count_as_ids_and_surrogate_pairs_as_characters(tmp_path: Path) -> None:
    one, two = documents(load(tmp_path / "a.ndjson", '{"id": 7, "text": "x"}\n{"text": "\\ud83e\\udd89"}\n'))
    assert one.id == "7"
    assert two.text == "🦉"


def test_line_separators_inside_strings_end_no_line(tmp_path: Path) -> None:
    (document,) = documents(load(tmp_path / "a.jsonl", '{"text": "a\u2028b\x85c"}'))
    assert document.text == "a\u2028b\x85c"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_jsonl_may_begin_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    # U+0A0A is a letter whose UTF-16 bytes are both those of a line end.
    loaded = load(tmp_path / "a.jsonl", '{"text": "a\u0a0a"}\r\n{"text": "b"}\n'.encode(encoding))
    assert [document.text for document in documents(loaded)] == ["a\u0a0a", "b"]


def test_a_line_over_the_limit_fails_alone_however_large_the_file(tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}) for text in ("a" * 20, "b" * 500, "c" * 20, "d" * 88, "e" * 89)]
    settings = IndexingSettings(max_file_bytes=len(lines[3]))
    a, b, c, d, e = load(tmp_path / "a.jsonl", "\n".join(lines), settings)
    assert [document.text[0] for document in documents([a, c, d])] == ["a", "c", "d"]
    assert [item.source[-2:] for item in (b, e) if isinstance(item, Failure)] == [":2", ":5"]
    assert isinstance(b, Failure)
    assert "too large" in b.reason


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_a_record_fails(tmp_path: Path, content: str) -> None:
    (failed,) = load(tmp_path / "a.jsonl", content)
    assert isinstance(failed, Failure)
    assert failed.reason.startswith("empty")


def test_json_is_one_record_or_a_list_of_them(tmp_path: Path) -> None:
    (one,) = documents(load(tmp_path / "a.json", '{\n "text": "x"\n}'))
    assert one.source == f"{tmp_path.as_posix()}/a.json"
    good, failed, last = load(tmp_path / "b.json", '[{"text": "x"}, {"text": "y", "m": NaN}, {"text": "z"}]')
    assert [document.text for document in documents([good, last])] == ["x", "z"]
    assert isinstance(failed, Failure)
    assert failed.source == f"{tmp_path.as_posix()}/b.json[2]"


@pytest.mark.parametrize(
    ("content", "reason"),
    [("[]", "no record"), ("5", "not a record"), ("[1,", "column 4"), ("[\n1,", "line 2 column 3"), ("{}", "no")],
)
def test_json_that_holds_no_record_fails(tmp_path: Path, content: str, reason: str) -> None:
    (failed,) = load(tmp_path / "a.json", content)
    assert isinstance(failed, Failure)
    assert reason in failed.reason


def test_standard_input_is_recognised() -> None:
    def texts(content: str | bytes, format: StdinFormat = "auto") -> list[str]:
        return [document.text for document in documents(stdin(content, format))]

    assert texts("Just text.\n") == ["Just text.\n"]
    assert texts('\n{"text": "a"}\n{"text": "b"}') == ["a", "b"]
    assert texts('[{"text": "a"},\n{"text": "b"}]') == ["a", "b"]
    assert texts('{\n"text": "a"\n}') == ["a"]
    assert texts('{"text": "a"}\n{"text": "b"}'.encode("utf-16")) == ["a", "b"]
    assert texts("{not a record}\n{more}") == ["{not a record}\n{more}"]
    assert texts("[1, 2]") == ["[1, 2]"]
    assert texts('{"text": "a"}', "text") == ['{"text": "a"}']
    assert texts("\ufeffmarked") == ["marked"]
    assert texts("<p>", "text") == ["<p>"]


def test_a_text_on_standard_input_has_its_content_hash_as_id() -> None:
    (document,) = documents(stdin("Just text."))
    assert document.id == document.content_hash
    (titled,) = documents(stdin("# T\n\nx", "markdown"))
    assert titled.title == "T"


@pytest.mark.parametrize(
    ("content", "format", "reason"),
    [
        ("", "auto", "empty"),
        ("", "jsonl", "empty"),
        ("\n", "text", "blank"),
        ("<!DOCTYPE html><p>x", "auto", "HTML"),
        (b"PK\x03\x04", "auto", "ZIP"),
        ("x" * 101, "auto", "too large"),
        ("x\n" * 51, "auto", "too large"),
        ("\n" * 101, "auto", "too large"),
        ("x" * 101, "text", "too large"),
        ("plain", "json", "not valid JSON"),
    ],
)
def test_standard_input_that_cannot_be_taken_is_one_failure(
    content: str | bytes, format: StdinFormat, reason: str
) -> None:
    (failed,) = stdin(content, format, limit=100)
    assert isinstance(failed, Failure)
    assert failed.source == "standard input"
    assert reason in failed.reason


def test_standard_input_of_records_may_be_larger_than_the_limit() -> None:
    assert len(stdin('{"text": "a"}\n' * 50, limit=20)) == 50


def test_python_items_are_texts_records_and_documents() -> None:
    text, record, document = load_items(["x", {"id": "r", "text": "y", "tags": ("a",)}, Document("d", "z")])
    assert isinstance(text, Document)
    assert text.id == text.content_hash
    assert record == Document("r", "y", metadata={"tags": ["a"]})
    assert document == Document("d", "z")


def test_python_items_that_cannot_be_taken_are_named() -> None:
    heading = Heading(1, "no", 0, 2)
    wrong: list[object] = [
        5,
        {"id": "r", "text": 5},
        {1: 2},
        Document("d", "yes", headings=(heading,)),
        Document("", ""),
        Document("h", "x" * 1001, headings=(Heading(1, "x" * 1001, 0, 1001),)),
    ]
    failures = list(load_items(wrong))  # type: ignore[arg-type] # what a caller without a type checker may pass
    assert [failure.source for failure in failures if isinstance(failure, Failure)] == [
        "item 1",
        "r",
        "item 3",
        "d",
        "item 5",
        "h",
    ]


def test_what_was_checked_cannot_be_changed_from_outside() -> None:
    tags: list[object] = ["a"]
    document = document_from({"text": "x", "tags": tags})
    tags.append(float("nan"))
    assert document.metadata == {"tags": ["a"]}


def test_metadata_that_holds_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(InputError, match="nested more than"):
        document_from({"text": "x", "loop": loop})


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1999", 1999),
        ("1.5", 1.5),
        ("true", True),
        ('"1999"', "1999"),
        ("x", "x"),
        ("", ""),
        ("NaN", "NaN"),
        ("[1]", [1]),
    ],
)
def test_hand_written_values_are_json_or_text(written: str, value: object) -> None:
    assert json_or_text(written) == value
