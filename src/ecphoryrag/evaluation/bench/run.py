"""The runner: every cell of a configuration, question by question, each row on the disk before the next is asked.

A run that was stopped, by whatever, goes on where it stopped when it is started again with the same configuration and
folder. Rows are never mixed: those that the configuration, the data, the models and the code in force would not make
again are refused, and what differs is named.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ecphoryrag.calls.budget import Budget
from ecphoryrag.errors import InputError, JobStopped, ModelNotAvailable, SettingsError
from ecphoryrag.evaluation.baselines.port import Indexed, Kit, Method
from ecphoryrag.evaluation.baselines.registry import entry, make
from ecphoryrag.evaluation.bench.ask import Asking, ask
from ecphoryrag.evaluation.bench.config import BenchConfig, load_config
from ecphoryrag.evaluation.bench.freeze import check_frozen, read_frozen
from ecphoryrag.evaluation.bench.lock import locked
from ecphoryrag.evaluation.bench.manifest import Sitting, begin, read_sittings, write_manifest
from ecphoryrag.evaluation.bench.models import REPLIES, Meter, MeteredEncoder, PaidGenerator, Replies
from ecphoryrag.evaluation.bench.plan import Data, Identities, Planned, plan
from ecphoryrag.evaluation.bench.progress import BenchProgress, Pace, Tell
from ecphoryrag.evaluation.bench.rows import ROWS, QuestionRow, RowFile, Rows, read_rows
from ecphoryrag.evaluation.bench.texts import write_texts
from ecphoryrag.evaluation.bench.watch import Watched
from ecphoryrag.evaluation.dataset import Question
from ecphoryrag.evaluation.methods import CANNOT_RUN, NEED_VECTORS, WRONG_ANSWER
from ecphoryrag.evaluation.metrics import require_ir_measures
from ecphoryrag.models.registry import make_encoder, make_generator
from ecphoryrag.ports import Encoder, Generator
from ecphoryrag.settings import Settings
from ecphoryrag.types import JsonValue, Message

WORK = "work"
"""Folder of the indexes, in a run's folder."""
NOT_KEPT = ("work/", "texts.jsonl", "report.html", ".lock", "*.new")
"""What a run's folder tells git to leave alone: what can be made again, and the data sets' own texts."""
MAKES_NONE = "it needs vectors, and the encoder makes none"


@dataclass(frozen=True, slots=True)
class Choose:
    """What a run may be told besides its configuration."""

    data: Path | None = None
    """Relative paths of data sets and of files among the parameters count from here instead of the configuration."""
    only: tuple[str, ...] = ()
    """Labels, methods, data sets or encoders: cells that bear none of these names are left for another time."""
    encoder: Callable[[Settings], Encoder] = make_encoder
    generator: Callable[[Settings], Generator | None] = make_generator


@dataclass(frozen=True, slots=True)
class BenchReport:
    """What a sitting did."""

    out: Path
    cells: int
    asked: int
    """Questions asked in this sitting."""
    already: int
    """Questions that had a row."""
    left: int
    """Questions without a row; of cells that cannot run, and of those left out by ``only``, none are counted."""
    errors: int
    """Questions of this sitting that failed."""
    unavailable: tuple[tuple[str, str], ...]
    """Cells that cannot run, with the reason."""
    tokens: int
    """Of the language model, paid in this sitting."""
    stopped: str | None
    """Why it ended before all was done; None if it did not."""


def run(
    config_path: Path,
    out_dir: Path,
    *,
    limit: int | None = None,
    max_tokens: int | None = None,
    progress: Tell | None = None,
    choose: Choose | None = None,
) -> BenchReport:
    """Run what the configuration asks for and the folder does not hold yet.

    ``limit`` asks only the first questions of each cell; ``max_tokens`` is what the language model may be paid in this
    sitting. Ctrl-C, a spent budget and a model that can no longer be reached end it cleanly: see ``stopped``.

    Raises SettingsError for a configuration that is malformed or not allowed (see :mod:`.freeze`), InputError for data
    that cannot be used and for a folder with rows of another run, ModelNotAvailable for a model that is missing, and
    EcphoryError if the extra `eval` is.
    """
    require_ir_measures()
    if limit is not None and limit < 1:
        raise InputError(f"the limit on questions is {limit}: give 1 or more, or leave it out for all")
    choose = choose or Choose()
    config, text = load_config(config_path)
    folder = choose.data or config_path.parent
    with locked(out_dir), ExitStack() as open_:
        shared = _share(config, out_dir, choose, max_tokens, open_)
        planned = plan(config, folder, Data(config, folder), shared.identities)
        if config.frozen is not None:
            frozen = read_frozen(config_path.parent / config.frozen)
            check_frozen(frozen, planned, strict=config.code == "strict")
        before = read_rows(out_dir)
        check_same(before, planned, out_dir)
        sittings = read_sittings(out_dir)
        (out_dir / ".gitignore").write_text("\n".join(NOT_KEPT) + "\n", encoding="utf-8")
        write_texts(out_dir, [(cell.row.dataset, cell.dataset) for cell in planned])
        rows = open_.enter_context(RowFile(out_dir / ROWS))
        runner = _Runner(out_dir, config, shared, rows, progress or _silent, limit, before)
        sitting = begin(limit, max_tokens)
        runner.keep_manifest = lambda now: write_manifest(
            out_dir, text, planned, shared.identities, [*sittings, _json(now)]
        )
        return runner.run(planned, sitting, choose.only)


def check_same(rows: Rows, planned: Sequence[Planned], out: Path) -> None:
    """Raises InputError if the folder holds rows that this configuration, now, would not make."""
    keys = {cell.row.key for cell in planned}
    for cell in rows.cells:
        if cell.key in keys:
            continue
        named = (cell.label, cell.dataset, cell.encoder, cell.seed)
        now = next(
            (
                each.row
                for each in planned
                if (each.row.label, each.row.dataset, each.row.encoder, each.row.seed) == named
            ),
            None,
        )
        what = f"rows of {cell.label} with {cell.encoder} on {cell.dataset}, seed {cell.seed},"
        if now is None:
            raise InputError(
                f"{out} holds {what} which the configuration does not ask for; put it back, or name a new folder"
            )
        differ = [name for name in now.parts if now.parts[name] != cell.parts.get(name)]
        hint = ', or set code = "version" in the configuration and answer for it' if differ == ["code"] else ""
        raise InputError(
            f"{out} holds {what} made with other {', '.join(differ)}; name a new folder, or go back to what made "
            f"them{hint}"
        )


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all methods share."""

    identities: Identities
    encoders: dict[str, MeteredEncoder]
    generator: PaidGenerator | None
    meter: Meter


def _share(config: BenchConfig, out: Path, choose: Choose, max_tokens: int | None, open_: ExitStack) -> _Shared:
    meter = Meter()
    encoders: dict[str, MeteredEncoder] = {}
    for name in config.encoders:
        encoder = choose.encoder(config.settings.model_copy(update={"encoder": name}))
        open_.callback(encoder.close)
        encoders[name] = MeteredEncoder(encoder, meter)
    identities = {name: encoder.identity for name, encoder in encoders.items()}
    if config.generator is None:
        return _Shared(Identities(identities, None), encoders, None, meter)
    inner = choose.generator(config.settings.model_copy(update={"generator": config.generator}))
    if inner is None:
        raise SettingsError("no language model of this name: set `generator`, or leave it out to measure retrieval")
    open_.callback(inner.close)
    replies = Replies(out / REPLIES)
    open_.callback(replies.close)
    budget = Budget()
    open_.enter_context(budget.limited_to(max_tokens))
    paid = PaidGenerator(inner, meter, replies, budget, limited=max_tokens is not None)
    return _Shared(Identities(identities, paid.identity, paid.name), encoders, paid, meter)


@dataclass(slots=True)
class _Runner:
    """One sitting."""

    out: Path
    config: BenchConfig
    shared: _Shared
    rows: RowFile
    tell: Tell
    limit: int | None
    before: Rows
    keep_manifest: Callable[[Sitting], None] = lambda sitting: None
    pace: Pace = field(default_factory=Pace)
    asked: int = 0
    errors: int = 0
    already: int = 0
    total: int = 0
    unavailable: dict[str, str] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)

    def run(self, planned: Sequence[Planned], sitting: Sitting, only: Sequence[str]) -> BenchReport:
        """All cells; what ends the sitting early is in the report."""
        start = time.perf_counter()
        done = {(row.cell, row.id) for row in self.before.questions}
        todo = [(cell, self._questions(cell, done)) for cell in planned if _asked_for(cell, only)]
        labels = {cell.row.key: cell.row.label for cell in planned}
        for row in self.before.questions:
            self.pace.add(labels[row.cell], row.seconds)
        for cell, questions in todo:
            self.left[cell.row.label] += len(questions)
        self.already = len(done)
        self.total = self.already + self.left.total()
        self.keep_manifest(sitting)
        stopped = self._all(todo)
        paid = self.shared.generator.paid if self.shared.generator else 0
        seconds = time.perf_counter() - start
        self.keep_manifest(replace(sitting, rows=self.asked, tokens=paid, seconds=seconds, stopped=stopped))
        return BenchReport(
            out=self.out,
            cells=len(todo),
            asked=self.asked,
            already=self.already,
            left=self.left.total(),
            errors=self.errors,
            unavailable=tuple(self.unavailable.items()),
            tokens=paid,
            stopped=stopped,
        )

    def _questions(self, cell: Planned, done: set[tuple[str, str]]) -> list[Question]:
        """Those without a row."""
        return [
            question for question in cell.dataset.questions[: self.limit] if (cell.row.key, question.id) not in done
        ]

    def _all(self, todo: Sequence[tuple[Planned, list[Question]]]) -> str | None:
        try:
            due = [(cell, questions) for cell, questions in todo if questions or self._to_index(cell)]
            if self.shared.generator is not None and due:
                self.shared.generator.count_tokens([Message("user", "loads the model, so that no question waits")])
            for cell, questions in due:
                self._cell(cell, questions)
        except KeyboardInterrupt:
            return "interrupted"
        except JobStopped as error:
            return str(error)
        return None

    def _to_index(self, cell: Planned) -> bool:
        """Whether nothing is to be asked, and the cell has no line that says what its index took."""
        return self.config.questions == 0 and all(
            row.key != cell.row.key or row.unavailable is not None for row in self.before.cells
        )

    def _cell(self, cell: Planned, questions: Sequence[Question]) -> None:
        """Index, then ask. A method that cannot run is recorded with its reason, and the next one has its turn."""
        name = f"{cell.row.dataset}, {cell.row.encoder}, {cell.row.label}"
        try:
            if cell.row.method in NEED_VECTORS and self.shared.identities.encoders[cell.row.encoder].dimension == 0:
                raise ModelNotAvailable(MAKES_NONE)
            with self._method(cell, name) as method:
                indexed = method.index(cell.dataset.documents)
                self._stop_if_told()
                self._record(cell, indexed)
                if questions:
                    self._ask_all(cell, method, questions, name)
        except CANNOT_RUN as error:
            self._stop_if_told()
            self.unavailable[name] = str(error)
            self.left[cell.row.label] -= len(questions)
            self.total -= len(questions)
            self.rows.append(replace(cell.row, unavailable=str(error)))

    @contextmanager
    def _method(self, cell: Planned, name: str) -> Iterator[Method]:
        folder = self.out / WORK / f"{cell.row.dataset}-{cell.row.encoder.replace('/', '_')}"
        kit = Kit(
            folder=folder / f"{cell.row.method}-{cell.index_key}",
            settings=cell.settings,
            encoder=self.shared.encoders[cell.row.encoder],
            generator=self.shared.generator,
            ledger=None,  # the run keeps the replies itself
            parameters=cell.variant.given,
            tell=lambda what, done, total: self._tell(name, what, done, total),
            clock=self.shared.meter.clock,
        )
        kit.folder.mkdir(parents=True, exist_ok=True)
        method = make(cell.row.method, kit)
        try:
            yield method
        finally:
            method.close()

    def _record(self, cell: Planned, indexed: Indexed) -> None:
        """The cell's line, unless it stands already."""
        known = next((row for row in self.before.cells if row.key == cell.row.key), None)
        if known is not None and known.unavailable is None:
            return
        self.rows.append(
            replace(
                cell.row,
                index=replace(indexed.usage, seconds=0.0, cached=0),
                index_seconds=indexed.seconds,
                index_figures=dict(indexed.figures),
                notes=(*cell.row.notes, *indexed.notes),
            )
        )

    def _ask_all(self, cell: Planned, method: Method, questions: Sequence[Question], name: str) -> None:
        known = entry(cell.row.method)
        if known.warm:
            self._warm(method, questions[-1].text)
        watched = Watched(method)
        asking = Asking(
            cell=cell.row.key,
            method=watched,
            retrieves=known.retrieves,
            generator=self.shared.generator,
            meter=self.shared.meter,
            reading=cell.settings.answering,
            k=cell.row.k,
            normalisation=self.config.normalisation,
            code=cell.row.parts["code"],
        )
        for number, question in enumerate(questions, 1):
            row = ask(asking, question)
            self._stop_if_told()
            if known.retrieves:
                row = replace(row, figures={**row.figures, **watched.take(cell.row.k)})
            self._keep(row, cell.row.label)
            self._tell(name, "ask", number, len(questions))

    def _warm(self, method: Method, question: str) -> None:
        """Ask once without the clock, so that arrays that are loaded once are no question's time."""
        try:
            method.retrieve(question, 1)
        except CANNOT_RUN:
            raise
        except WRONG_ANSWER:
            return  # it is asked again, and its error is kept then

    def _keep(self, row: QuestionRow, label: str) -> None:
        self.rows.append(row)
        self.asked += 1
        self.errors += row.error is not None
        self.left[label] -= 1
        self.pace.add(label, row.seconds)

    def _stop_if_told(self) -> None:
        """A model that makes no more calls says nothing of a question: its row is not written."""
        generator = self.shared.generator
        if generator is not None and generator.stopped is not None:
            raise JobStopped(str(generator.stopped)) from generator.stopped

    def _tell(self, cell: str, doing: str, done: int, total: int | None) -> None:
        asked = self.already + self.asked
        left = self.pace.left(self.left)
        self.tell(BenchProgress(cell, doing, done, total, asked, self.total, left))


def _asked_for(cell: Planned, only: Sequence[str]) -> bool:
    row = cell.row
    return not only or bool({row.label, row.method, row.dataset, row.encoder} & set(only))


def _json(sitting: Sitting) -> JsonValue:
    record: dict[str, JsonValue] = asdict(sitting)
    return record


def _silent(progress: BenchProgress) -> None:
    """No progress asked for."""
