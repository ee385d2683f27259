"""The rows of a run: what is written for a cell and for a question, reading them back, and the table made of them.

``rows.jsonl`` is JSON Lines in UTF-8, only ever appended to. A *cell* is one method with one set of parameters on one
data set with one encoder and one seed. When its index is ready a line of ``kind`` ``cell`` says what it is made of and
what indexing took; then each question asked has a line of ``kind`` ``question`` that names the cell by its key. A
later line of one key replaces an earlier one. A last line without its line end was cut off by the end of its process;
it is passed over here and removed when the run goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal

from ecphoryrag.errors import InputError
from ecphoryrag.types import JsonValue, Usage

ROWS = "rows.jsonl"
"""Name of the file in a run's folder."""

Split = Literal["development", "test"]


@dataclass(frozen=True, slots=True)
class CellRow:
    """A cell: what determines its questions' rows, and what its index took."""

    key: str
    """Hash of all that determines the rows; ``parts`` says of what."""
    method: str
    """Name in the registry, such as ``paper``."""
    label: str
    """Name in the tables: the method's, and the parameters that the configuration varies, ``paper[k_final=40]``."""
    dataset: str
    encoder: str
    """As in the settings, such as ``static``."""
    seed: int
    """Draws the sample of questions."""
    split: Split
    generator: str | None
    """Of the answers; None for a run that only retrieves."""
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)
    varied: Mapping[str, JsonValue] = field(default_factory=dict)
    """Those of the parameters that the configuration gives several values of, ``k`` of the reader included: the
    horizontal axis of a figure."""
    k: int = 5
    """Pieces of evidence that the reader was given, at most."""
    normalisation: str = "squad"
    """Of answers before they are compared."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """A short hash or name of each thing the key is made of, so that a difference can be named."""
    chosen: str = ""
    """Hash of the settings alone, whatever the data, the seed and the code: what is chosen on development questions."""
    index: Usage = field(default_factory=Usage)
    """What indexing cost, also if it was done by an earlier run."""
    index_seconds: float = 0.0
    index_figures: Mapping[str, float] = field(default_factory=dict)
    """Sizes by name, such as ``entities``."""
    passages: int = 0
    notes: tuple[str, ...] = ()
    unavailable: str | None = None
    """Why this method cannot run here; it then has no questions."""


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One question asked in one cell. An error is a wrong answer; documents brought back before it count."""

    cell: str
    """Key of the cell."""
    id: str
    gold: tuple[str, ...]
    retrieved: tuple[str, ...]
    """Ids of documents, best first, at most 10."""
    figures: Mapping[str, float]
    """By name: those of :data:`ecphoryrag.evaluation.metrics.FIGURES`, where the method retrieves; ``em`` and ``f1``
    where it answers; ``gold_shown``, the share of the gold documents whose text stood in the reader's prompt."""
    usage: Usage = field(default_factory=Usage)
    """Of the question, retrieval and answer together; tokens paid in an earlier sitting included."""
    seconds: float = 0.0
    """From question to answer."""
    retrieval_seconds: float = 0.0
    answered: bool = False
    """Whether an answer was asked for."""
    answer: str | None = None
    reasoning: str = ""
    reason: str | None = None
    """Why there is no answer, or less evidence than could be expected."""
    error: str | None = None
    """What the method raised."""
    shown: tuple[str, ...] = ()
    """Ids of the documents in the reader's prompt, in its order."""
    cited: tuple[int, ...] = ()
    """Positions in the prompt, from 1, of the evidence that the answer says it used."""
    notes: tuple[str, ...] = ()
    code: str = ""
    """Short hash of the code that made the row."""
    asked: str = ""
    """Hash of the question's words, by which a question is known again in another file."""


Row = CellRow | QuestionRow


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of a run, each key once, in the order of their first lines."""

    cells: tuple[CellRow, ...] = ()
    questions: tuple[QuestionRow, ...] = ()

    def of(self, cell: CellRow) -> tuple[QuestionRow, ...]:
        """The questions of a cell, in the order asked."""
        return tuple(row for row in self.questions if row.cell == cell.key)

    def by_cell(self) -> dict[str, list[QuestionRow]]:
        """The questions of each cell, by its key; cells without questions included."""
        grouped: dict[str, list[QuestionRow]] = {cell.key: [] for cell in self.cells}
        for row in self.questions:
            grouped[row.cell].append(row)
        return grouped


def read_rows(run: Path) -> Rows:
    """The rows of a run's folder, or of a file of rows; none if there is no file yet.

    Raises InputError, naming file and line, for a line that is not a row, or a question whose cell has no line before.
    """
    path = run / ROWS if run.is_dir() else run
    if not path.exists():
        return Rows()
    cells: dict[str, CellRow] = {}
    questions: dict[tuple[str, str], QuestionRow] = {}
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            break
        row = _read(line, f"{path}, line {number}")
        if isinstance(row, CellRow):
            cells[row.key] = row
        elif row.cell in cells:
            questions[row.cell, row.id] = row
        else:
            raise InputError(f"{path}, line {number}: its cell {row.cell} has no line before it; restore the file")
    return Rows(tuple(cells.values()), tuple(questions.values()))


class RowFile:
    """Appends rows; each is on the disk when :meth:`append` returns."""

    def __init__(self, path: Path) -> None:
        """Opens the file, or makes it; a last line that was cut off is removed."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = path.open("a+b")
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            self._file.truncate(whole)
        self._flush()

    def __enter__(self) -> RowFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, row: Row) -> None:
        """Write one line. Raises ValueError for a figure that is not a finite number."""
        self._file.write(write_row(row).encode("utf-8", "surrogatepass"))
        self._flush()

    def _flush(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def write_row(row: Row) -> str:
    """The row's line, line end included; what has its default is left out.

    Raises ValueError for a figure that is not a finite number.
    """
    kind = "cell" if isinstance(row, CellRow) else "question"
    said = {each.name for each in fields(row) if getattr(row, each.name) != _default(each)}
    record = {name: value for name, value in asdict(row).items() if name in said}
    return json.dumps({"kind": kind, **record}, ensure_ascii=False, allow_nan=False) + "\n"


def _default(each: Field[Any]) -> object:
    return each.default if each.default_factory is MISSING else each.default_factory()


def _read(line: bytes, where: str) -> Row:
    try:
        record = json.loads(line.decode("utf-8", "surrogatepass"))
        kind = {"cell": CellRow, "question": QuestionRow}[record.pop("kind")]
        names = {each.name for each in fields(kind)}
        values = {name: _value(kind, name, record[name]) for name in record if name in names}
        return kind(**values)  # type: ignore[no-any-return]  # the class is looked up by the row's own word
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{where}: not a row of this version ({type(error).__name__}: {error}); restore it, or start a new run"
        ) from error


_TUPLES = frozenset({"gold", "retrieved", "shown", "cited", "notes"})


def _value(kind: type, name: str, value: Any) -> Any:
    """JSON knows neither tuples nor usages."""
    if name == "usage" or (kind is CellRow and name == "index"):
        return Usage(**value)
    return tuple(value) if name in _TUPLES else value


def same_cell(cells: Sequence[CellRow]) -> dict[tuple[str, str, str], list[CellRow]]:
    """Cells that differ only in their seed, by (dataset, encoder, label), in the order of their first lines."""
    grouped: dict[tuple[str, str, str], list[CellRow]] = {}
    for cell in cells:
        grouped.setdefault((cell.dataset, cell.encoder, cell.label), []).append(cell)
    return grouped
