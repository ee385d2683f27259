"""Rows written and read back, and the table made of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.bench.rows import ROWS, CellRow, QuestionRow, Row, RowFile, Rows, read_rows, write_row
from ecphoryrag.evaluation.bench.table import table
from ecphoryrag.types import JsonValue, Usage


def cell(key: str = "c", seed: int = 0, label: str = "dense", notes: tuple[str, ...] = ()) -> CellRow:
    return CellRow(
        key=key,
        method="dense",
        label=label,
        dataset="tiny",
        encoder="static",
        seed=seed,
        split="development",
        generator="local/x",
        varied={"k": 5},
        parts={"code": "abc"},
        index=Usage(2, 10, 4, 100),
        index_seconds=1.5,
        index_figures={"chunks": 6},
        notes=notes,
    )


def question(name: str, em: float, key: str = "c", seconds: float = 1.0, error: str | None = None) -> QuestionRow:
    return QuestionRow(
        cell=key,
        id=name,
        gold=("a", "b"),
        retrieved=("b", "x"),
        figures={"em": em, "recall@2": 0.5},
        usage=Usage(1, 100, 10, 5, estimated=em == 1.0),
        seconds=seconds,
        retrieval_seconds=0.25,
        answered=True,
        answer=None if error else "Zürich\ud800",
        error=error,
        cited=(1,),
        notes=("n",),
        code="abc",
    )


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    rows: list[Row] = [cell(), question("q1", 1.0), question("q2", 0.0, error="GenerationError: no"), cell("d", 1)]
    with RowFile(tmp_path / "run" / ROWS) as file:
        for row in rows:
            file.append(row)
    read = read_rows(tmp_path / "run")
    assert read.cells == (rows[0], rows[3])
    assert read.questions == (rows[1], rows[2])
    assert read.of(read.cells[0]) == read.questions
    assert read.by_cell()["d"] == []
    assert read_rows(tmp_path / "run" / ROWS) == read
    assert read_rows(tmp_path) == Rows()


def test_defaults_are_not_written_and_kinds_are_told_apart() -> None:
    bare = CellRow("k", "m", "l", "d", "e", 0, "test", None)
    written = json.loads(write_row(bare))
    assert written == {
        "kind": "cell", "key": "k", "method": "m", "label": "l", "dataset": "d", "encoder": "e", "seed": 0,
        "split": "test", "generator": None,
    }  # fmt: skip


def test_a_later_line_of_one_key_replaces_the_earlier(tmp_path: Path) -> None:
    with RowFile(tmp_path / ROWS) as file:
        for row in (cell(notes=("old",)), question("q1", 0.0), cell(notes=("new",)), question("q1", 1.0)):
            file.append(row)
    read = read_rows(tmp_path)
    assert [row.notes for row in read.cells] == [("new",)]
    assert [row.figures["em"] for row in read.questions] == [1.0]


def test_a_torn_last_line_is_passed_over_and_removed(tmp_path: Path) -> None:
    path = tmp_path / ROWS
    with RowFile(path) as file:
        file.append(cell())
    whole = path.read_bytes()
    path.write_bytes(whole + write_row(question("q1", 1.0)).encode("utf-8", "surrogatepass")[:-1])
    assert read_rows(tmp_path).questions == ()
    with RowFile(path) as file:
        assert path.read_bytes() == whole
        file.append(question("q2", 1.0))
    assert [row.id for row in read_rows(tmp_path).questions] == ["q2"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{}\n", r"line 2: not a row"),
        ("\n", r"line 2: not a row"),
        ('{"kind": "other"}\n', r"line 2: not a row"),
        ('{"kind": "question", "cell": "c"}\n', r"line 2: not a row"),
        (
            '{"kind": "question", "cell": "z", "id": "q", "gold": [], "retrieved": [], "figures": {}}\n',
            "no line before",
        ),
        ("[1]\n", r"line 2: not a row"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / ROWS).write_text(write_row(cell()) + line, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_rows(tmp_path)


def test_a_figure_that_is_no_number_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_row(question("q", float("nan")))


def test_the_table_by_hand() -> None:
    rows = Rows(
        (cell("c", 0, notes=("n1",)), cell("d", 1), cell("e", 0, label="other")),
        (
            question("q1", 1.0),
            question("q2", 0.0, seconds=3.0, error="X: y"),
            question("q1", 1.0, "d"),
            question("q3", 1.0, "d"),
        ),
    )
    first, other = table(rows)
    assert (first.label, first.seeds, first.questions, first.errors, first.unanswered) == ("dense", (0, 1), 4, 1, 1)
    em = first.figures["em"]
    assert em.mean == pytest.approx(0.75)  # of 0.5 and 1
    assert em.deviation == pytest.approx(0.5 / 2**0.5)
    assert em.error == pytest.approx(1 / 3)  # q1, q2, q3: 1, 0, 1; deviation sqrt(1/3), three questions
    assert list(first.figures) == ["em", "recall@2"]
    assert first.figures["recall@2"].deviation == 0.0
    assert first.query is not None
    assert (first.query.input_tokens, first.query.seconds, first.query.estimated) == (100, 1.0, True)
    assert (first.index.embedding_tokens, first.index.seconds, first.retrieval_seconds) == (100, 1.5, 0.25)
    assert (first.code, first.notes, first.varied) == (("abc",), ("n1",), {"k": 5})
    assert (other.label, other.questions, other.query, other.seeds, dict(other.figures)) == ("other", 0, None, (), {})


def test_one_seed_has_no_deviation_and_one_question_no_error() -> None:
    (row,) = table(Rows((cell(),), (question("q1", 1.0),)))
    assert (row.figures["em"].deviation, row.figures["em"].error) == (None, None)


def test_a_figure_that_some_rows_lack_is_left_out_and_named() -> None:
    lacking: Mapping[str, JsonValue] = {"recall@2": 0.5}
    short = QuestionRow("c", "q2", ("a",), (), {name: float(str(value)) for name, value in lacking.items()})
    (row,) = table(Rows((cell(),), (question("q1", 1.0), short)))
    assert list(row.figures) == ["recall@2"]
    assert "not in every row, so not in the table: em" in row.notes


def test_the_table_does_not_depend_on_the_order_of_questions() -> None:
    asked = tuple(question(f"q{n}", n / 7) for n in range(7))
    assert table(Rows((cell(),), asked)) == table(Rows((cell(),), asked[::-1]))
