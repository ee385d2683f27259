"""Every door of the program, knocked at with what :mod:`tests.support.hostile` makes, and what must hold afterwards.

A case is a door and a seed. It may be taken or refused with an error of this package; nothing else may be raised,
nothing may change outside of the store and the files beside it, and no control character may reach a terminal.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import typer

from ecphoryrag import Memory
from ecphoryrag.cli import app, run
from ecphoryrag.errors import EcphoryError
from ecphoryrag.models.none import NoEncoder
from ecphoryrag.models.static import StaticEncoder
from ecphoryrag.ports import Encoder
from ecphoryrag.settings import Settings
from ecphoryrag.types import Document, Heading
from tests.support import hostile

STORE = "memory.ecphory"
CODES = {0, 1, 2, 3, 4, 5}
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What must not reach a terminal: control characters other than the line's end and tabs, and overrides of direction."""
SLOW = 60.0
"""Seconds of processor time that one case may take."""
ALONE = 1 / 400
"""Share of the commands that are run in a process of their own."""
CLI_BYTES = 3 * 2**30
"""Of address space that a process of its own may take."""
CORPUS: list[dict[str, Any]] = [
    {"id": "curie", "title": "Marie Curie", "text": hostile.PLAIN[0], "lang": "en", "year": 1867},
    {"id": "warsaw", "title": "Warsaw", "text": hostile.PLAIN[1] * 3, "lang": "en", "a": {"b": {"c": [1, "x"]}}},
    {"id": "jaws", "text": hostile.PLAIN[2], "lang": "fr", "tags": ["river", "water"]},
    {"id": "\x1b[31mred\u202e", "title": "t\x9b\u2066", "text": "The \x1b]0;owned\x07 Red Sea.", "\x1b[2J": "\x07"},
]


@dataclass(slots=True)
class Outcome:
    """What came of one case."""

    door: str
    seed: int
    ended: str
    """``taken``, ``refused``, or ``code N`` of a command."""
    wrong: str | None = None
    seconds: float = 0.0


@dataclass
class Arena:
    """A folder to work in, a home and a folder that nothing may touch, and stores to begin each case with."""

    root: Path
    encoders: dict[str, Encoder] = field(default_factory=lambda: {"none": NoEncoder(), "static": StaticEncoder()})
    exports: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("work", "home", "outside", "pristine"):
            (self.root / name).mkdir(parents=True)
        (self.root / "outside" / "x").write_text("not to be touched")
        (self.root / "home" / ".profile").write_text("not to be touched")
        for name, encoder in self.encoders.items():
            path = self.root / "pristine" / name
            with Memory.open(path, settings=Settings(encoder="none", generator="none"), encoder=encoder) as memory:
                memory.add(CORPUS)
                memory.recall("Where was Marie Curie born?")
                written = io.StringIO()
                memory.export(written, vectors=True)
                self.exports[name] = written.getvalue().splitlines()

    @property
    def work(self) -> Path:
        """The working folder of each case."""
        return self.root / "work"

    @property
    def store(self) -> Path:
        """The store of each case."""
        return self.work / STORE

    def renew(self, encoder: str) -> None:
        """The folder with nothing in it but a fresh store."""
        shutil.rmtree(self.work)
        self.work.mkdir()
        shutil.copyfile(self.root / "pristine" / encoder, self.store)

    def seen(self) -> dict[bytes, tuple[int, int, int]]:
        """All that lies outside of the store and the files beside it: kind, size and time of each."""
        found: dict[bytes, tuple[int, int, int]] = {}
        pending = [os.fsencode(self.root)]
        own = os.fsencode(self.store)
        while pending:
            with os.scandir(pending.pop()) as scan:
                for entry in scan:
                    if entry.path == own or entry.path.startswith(own + b"-"):
                        continue
                    status = entry.stat(follow_symlinks=False)
                    folder = entry.is_dir(follow_symlinks=False)
                    found[entry.path] = (
                        (status.st_mode, 0, 0) if folder else (status.st_mode, status.st_size, status.st_mtime_ns)
                    )
                    if folder:
                        pending.append(entry.path)
        return found

    @contextlib.contextmanager
    def opened(self, rng: random.Random, encoder: str | None = None) -> Iterator[Memory]:
        """The case's store, fresh."""
        name = encoder or rng.choice(("none", "none", "static"))
        self.renew(name)
        settings = Settings(encoder="none", generator="none", indexing={"max_file_bytes": 2**20})  # type: ignore[arg-type]  # read from a mapping
        with Memory.open(self.store, settings=settings, encoder=self.encoders[name]) as memory:
            yield memory


Door = Callable[[Arena, random.Random], str]


def knock(arena: Arena, door: str, seed: int) -> Outcome:
    """Carry out one case."""
    rng = random.Random(f"{door} {seed}")
    arena.renew("none")
    started = time.process_time()
    ended, wrong = "refused", None
    before = arena.seen()
    try:
        with _environment(arena):
            ended = DOORS[door][1](arena, rng)
    except EcphoryError:
        pass
    except AssertionError as error:
        wrong = str(error) or traceback.format_exc()
    except Exception:  # noqa: BLE001 - whatever it is, it is what is being looked for
        wrong = traceback.format_exc()
    seconds = time.process_time() - started
    changed = _changed(before, arena.seen(), arena.work)
    if wrong is None and changed:
        wrong = f"changed outside of the store: {changed}"
    if wrong is None and seconds > SLOW:
        wrong = f"took {seconds:.0f} s"
    return Outcome(door, seed, ended, wrong, seconds)


def _changed(before: dict[bytes, Any], after: dict[bytes, Any], work: Path) -> list[bytes]:
    """What the case itself made in its folder, under a name that begins with ``in``, is its own affair."""
    own = (os.fsencode(work / "in"), os.fsencode(work / "out"))
    found = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    return sorted(path for path in found if not path.startswith(own))


@contextlib.contextmanager
def _environment(arena: Arena) -> Iterator[None]:
    """Home, working folder and settings of the case, put back afterwards."""
    kept, here = dict(os.environ), Path.cwd()
    for variable in [variable for variable in os.environ if variable.upper().startswith("ECPHORY_")]:
        del os.environ[variable]
    os.environ.update({"HOME": str(arena.root / "home"), "ECPHORY_ENCODER": "none", "ECPHORY_GENERATOR": "none"})
    os.chdir(arena.work)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(kept)


def command(arguments: list[str], stdin: bytes = b"", *, alone: bool = False) -> str:
    """Run a command line, in this process or in one of its own, and look at what it says and how it ends."""
    code, out, err = (_alone if alone else _within)(arguments, stdin)
    said = f"ecphory {arguments!a:.300}: code {code}\n{err[-2000:]}"
    assert code in CODES, said
    assert "Traceback" not in err, said
    raw = RAW.search(err) or (None if arguments[0] == "export" else RAW.search(out))
    assert raw is None, f"{raw and raw[0]!a} reaches the terminal, of {said}"
    if "--json" in arguments and code in {0, 3}:
        json.loads(out.splitlines()[0])
    return f"code {code}"


def _within(arguments: list[str], stdin: bytes) -> tuple[int, str, str]:
    before, told = sys.stdin, io.BytesIO()
    if isinstance(app.app, typer.Typer):
        app.app = typer.main.get_command(app.app)  # type: ignore[assignment]  # which a Typer makes anew at each call
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    printed = b""
    with tempfile.TemporaryFile() as file:  # since standard output has a number
        out, err = (
            io.TextIOWrapper(one, "utf-8", errors="backslashreplace", write_through=True) for one in (file, told)
        )
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run(arguments)
        finally:
            sys.stdin = before
            out.detach()
        with contextlib.suppress(OSError):  # it leads nowhere after an output that could not be written
            file.seek(0)
            printed = file.read()
    return code, printed.decode("utf-8"), told.getvalue().decode("utf-8")


def _alone(arguments: list[str], stdin: bytes) -> tuple[int, str, str]:
    given = [os.fsencode(one) for one in arguments if b"\0" not in os.fsencode(one)]
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"ecphoryrag", *given],
        input=stdin,
        capture_output=True,
        timeout=600,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (CLI_BYTES, CLI_BYTES)),
    )
    return done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8")


def argument(rng: random.Random) -> str:
    """A text as a shell can pass it on."""
    made = hostile.name(rng) if rng.random() < 0.7 else hostile.text(rng, 200)
    return os.fsdecode(made.replace("\0", "").encode("utf-8", "surrogatepass"))[:100_000]


def add_items(arena: Arena, rng: random.Random) -> str:
    """`Memory.add` of texts, records, documents and what is none of them."""
    items: list[Any] = []
    for _ in range(rng.randrange(1, 4)):
        items.append(
            rng.choice(
                (
                    lambda: hostile.record(rng),
                    lambda: hostile.text(rng),
                    lambda: _document(rng),
                    lambda: hostile.value(rng),
                )
            )()
        )
    with arena.opened(rng) as memory:
        report = memory.add(items[0] if rng.random() < 0.2 else items)
        for id_ in (*report.added, *report.updated):
            memory.inspect(id_)
        _ask_all(memory, rng)
    _sound(arena, rng)
    return "taken" if report.added or report.updated else "refused"


def _document(rng: random.Random) -> Document:
    text = rng.choice(hostile.PLAIN) + hostile.text(rng)
    odd: Any = hostile.value(rng)
    headings: Any = rng.choice(
        (
            (),
            (Heading(1, text[:5], 0, 5),),
            (Heading(-1, "x", 9, 3),),
            (Heading(10**30, text[:2], 0, 2),),
            odd,
            "x",
            (odd,),
        )
    )
    metadata: Any = rng.choice(({}, {hostile.name(rng): odd}, odd))
    source: Any = rng.choice((None, hostile.name(rng), odd))
    title: Any = rng.choice((hostile.name(rng), odd))
    return Document(hostile.name(rng), text, title, metadata, headings, source)


def _ask_all(memory: Memory, rng: random.Random) -> None:
    memory.recall("Where was Marie Curie born?", k=rng.choice((None, 1, 5)))
    memory.documents()
    memory.status()
    export = io.StringIO()
    left_out = memory.export(export, vectors=True).left_out
    assert not left_out, f"left out of the export: {left_out[:3]!a}"
    for line in export.getvalue().split("\n"):
        json.loads(line or "0", parse_constant=_no_json)


def _no_json(word: str) -> None:
    raise AssertionError(f"{word} in an export")


def _sound(arena: Arena, rng: random.Random) -> None:
    """What was taken in must be a sound store; looked at of some."""
    if rng.random() < 0.3:
        with Memory.open(
            arena.store, settings=Settings(encoder="none", generator="none"), read_only=True, encoder=_Same()
        ) as memory:
            flaws = [flaw for flaw in memory.verify(deep=True).flaws if flaw.severity != "note"]
        assert not flaws, f"not sound: {flaws[:3]!a}"


class _Same(NoEncoder):
    """Stands for whichever encoder the store has: nothing is encoded."""

    def __init__(self) -> None:
        super().__init__()


def queries(arena: Arena, rng: random.Random) -> str:
    """Questions, ids, names, numbers of chunks."""
    with arena.opened(rng) as memory:
        method: Any = rng.choice(("ecphory", "paper", "dense", "bm25", "hybrid", None, hostile.name(rng), 7))
        k: Any = rng.choice((None, 1, 7, 0, -1, 10**6, 2**63, 10**30, 1.5, "3", True))
        question: Any = rng.choice((hostile.text(rng), hostile.name(rng), hostile.value(rng)))
        name: Any = rng.choice((hostile.name(rng), hostile.value(rng)))
        ended = []
        for ask in (
            lambda: memory.recall(question, k=k, method=method),
            lambda: memory.ask(question, k=k, method=method),
            lambda: memory.entity(name),
            lambda: memory.get(name),
            lambda: memory.inspect(name),
            lambda: memory.forget(name, hostile.name(rng)),
            lambda: memory.forget(name),
        ):
            ended.append(_tried(ask))
        _ask_all(memory, rng)
    return "taken" if any(ended) else "refused"


def _tried(action: Callable[[], object]) -> bool:
    try:
        action()
    except EcphoryError:
        return False
    return True


def filters(arena: Arena, rng: random.Random) -> str:
    """Filters in Python."""
    with arena.opened(rng) as memory:
        where = hostile.where(rng)
        listed = _tried(lambda: memory.documents(where))
        recalled = _tried(lambda: memory.recall("Where was Marie Curie born?", where=where))
        assert listed == recalled, f"the filter {where!a:.200} is taken by one and not by the other"
    return "taken" if listed else "refused"


def files(arena: Arena, rng: random.Random) -> str:
    """`ecphory add` of one file."""
    folder = arena.work / "in"
    folder.mkdir()
    name = hostile.file_name(rng)
    path = os.fsencode(folder) + b"/" + name
    Path(os.fsdecode(path)).write_bytes(hostile.content(rng))
    given = rng.choice((os.fsdecode(path), f"in/{os.fsdecode(name)}", "in", "in/*", "in/**/*", "in/[", "in/../in"))
    ended = command(["add", *_json(rng), "--", given], alone=rng.random() < ALONE)
    _after(arena, rng)
    return ended


def folders(arena: Arena, rng: random.Random) -> str:
    """`ecphory add` of a folder with pipes, rings of links and rules in it."""
    hostile.tree(rng, arena.work / "in")
    ended = command(
        ["add", *_json(rng), rng.choice(("in", "in/**", "in/*.txt", "in/**/*.md", "."))], alone=rng.random() < ALONE
    )
    _after(arena, rng)
    return ended


def streams(arena: Arena, rng: random.Random) -> str:
    """`ecphory add -`."""
    form = rng.choice(("auto", "text", "markdown", "json", "jsonl", "auto"))
    ended = command(["add", "-", "--format", form, *_json(rng)], hostile.content(rng), alone=rng.random() < ALONE)
    _after(arena, rng)
    return ended


def _json(rng: random.Random) -> list[str]:
    return ["--json"] if rng.random() < 0.4 else []


def _after(arena: Arena, rng: random.Random) -> None:
    command(rng.choice((["list"], ["status"], ["recall", "Where was Curie born?", "--explain"], ["verify", "--deep"])))
    if rng.random() < 0.2:
        assert command(["verify", "--deep"]) == "code 0"


def lines(arena: Arena, rng: random.Random) -> str:
    """`ecphory import` of an export with hostile lines."""
    encoder = rng.choice(("none", "static"))
    made = list(arena.exports[encoder])
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(made))
        made[at] = _spoiled(rng, made[at])
    if rng.random() < 0.2:
        made.insert(rng.randrange(len(made) + 1), hostile.json_bytes(rng).decode("utf-8", "replace"))
    data = hostile.soiled(rng, "\n".join(made).encode("utf-8", "surrogatepass"))
    path = arena.work / "in.jsonl"
    path.write_bytes(data)
    if encoder == "none":
        ended = command(["import", "in.jsonl", "--store", "out.ecphory" if rng.random() < 0.3 else STORE, *_json(rng)])
        _after(arena, rng)
        return ended
    with arena.opened(rng, "static") as memory:
        path.write_bytes(data)
        report = memory.import_file(path)
        _ask_all(memory, rng)
    _sound(arena, rng)
    return "taken" if report.added or report.updated else "refused"


def _spoiled(rng: random.Random, line: str) -> str:
    """The line with one of its values replaced, and often with the hash of what it then is."""
    record = json.loads(line)
    at: Any = record
    for _ in range(rng.randrange(1, 8)):
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            break
        key = rng.choice(keys)
        if isinstance(at[key], dict | list) and rng.random() < 0.7:
            at = at[key]
            continue
        at[key] = _replacement(rng, at[key])
        break
    if rng.random() < 0.7:
        with contextlib.suppress(Exception):
            headings = tuple(Heading(level, "", start, end) for level, start, end in record["headings"])
            record["content_hash"] = Document(
                record["id"], record["text"], record["title"], record["metadata"], headings
            ).content_hash
    return json.dumps(hostile.loosely(record), ensure_ascii=rng.random() < 0.5)


def _replacement(rng: random.Random, old: Any) -> Any:
    if isinstance(old, int) and rng.random() < 0.7:
        return rng.choice((*hostile.NUMBERS[:12], old + 1, old - 1, 10**6))
    if isinstance(old, str) and rng.random() < 0.7:
        vector = base64.b64encode(rng.randbytes(512)).decode()
        return rng.choice((hostile.name(rng), hostile.text(rng), old + "\0", old + "\ud800", vector, "/38AfA==" * 64))
    if isinstance(old, list) and rng.random() < 0.5:
        return old * rng.choice((0, 2, 50))
    if isinstance(old, dict) and rng.random() < 0.5:
        return {**old, hostile.name(rng): hostile.value(rng)}
    return hostile.value(rng)


SETTINGS = (
    *("store", "encoder", "generator", "extractor", "recall.k", "recall.method", "indexing.max_file_bytes"),
    *(
        "indexing.chunks.budget",
        "indexing.chunks.overlap",
        "indexing.stdin_format",
        "models.openai.base_url",
        "recall",
        "x.y",
    ),
)


def settings(arena: Arena, rng: random.Random) -> str:
    """A settings file, and variables."""
    name = rng.choice(SETTINGS)
    group, _, key = name.rpartition(".")
    odd = rng.choice(
        (json.dumps(hostile.loosely(hostile.value(rng))), str(rng.choice(hostile.NUMBERS)), '"' + argument(rng) + '"')
    )
    deep = rng.choice((50, 3000, 100_000))
    body = rng.choice(
        (
            f"[{group}]\n{key} = {odd}\n" if group else f"{key} = {odd}\n",
            f"{name} = {odd}\n{name} = {odd}\n",
            "a = " + "[" * deep,
            "a = " + "{b=" * deep,
            ".".join("a" * 500) + " = 1",
            "[" + ".".join("a" * 500) + "]",
            "a = 1" + "0" * 5000,
            "a = 1e999",
            "a = 9999-99-99T99:99:99Z",
            'a = "\\uD800"',
            hostile.text(rng),
        )
    )
    if rng.random() < 0.3:
        variable = "ECPHORY_" + rng.choice(
            (name.upper().replace(".", "__"), "RECALL__", "__", "STORE__X", "CONFIG", "recall__K")
        )
        os.environ[variable] = argument(rng) or "x"
    else:
        path = arena.work / "in.toml"
        path.write_bytes(hostile.soiled(rng, body.encode("utf-8", "surrogatepass")))
        os.environ["ECPHORY_CONFIG"] = rng.choice(("in.toml", "in.toml", "in.toml", "in", "/dev/zero", "/", "\udcff"))
    commands = (["config"], ["config", "--json"], ["list"], ["recall", "Curie"], ["add", "in.toml"], ["doctor"])
    return command(rng.choice(commands), alone=rng.random() < ALONE)


def arguments(arena: Arena, rng: random.Random) -> str:
    """Command lines."""
    one, two = argument(rng), argument(rng)
    path = "out" if "/" in two or two in {"", ".", ".."} else f"out{two}"
    given = rng.choice(
        (
            ["recall", *_json(rng), "--", one],
            ["recall", "Curie", "--where", f"{two}={one}", *_json(rng)],
            ["recall", "Curie", "-k", rng.choice(("1", "0", "-1", "9" * 30, "1e9", "٣", one))],
            ["recall", "Curie", "--method", one],
            ["ask", *_json(rng), "--", one],
            ["list", "--where", one, "--where", f"{one}={two}"],
            ["list", "--where", f"year={rng.choice(hostile.NUMBERS)}"],
            ["show", *_json(rng), "--", one],
            ["show", "\x1b[31mred\u202e"],
            ["forget", *_json(rng), "--", one, two],
            ["list", "--store", one],
            ["status", "--store", one, "--json"],
            ["add", "--", one],
            ["add", "--dry-run", "--", one],
            ["verify", "--store", one],
            ["backup", path],
            ["export", "-o", path, "--json"],
            ["export"],
            ["import", "--", one],
            ["config", "--config", one],
            ["list", "--encoder", one],
            ["reembed", "--encoder", one],
            [one or "x", two],
            [f"--{one}"],
            ["eval", "--corpus", one, "--questions", two],
            ["bench", "compare", one, two],
        )
    )
    kept = "\0" in "".join(given)
    return command(given, alone=not kept and rng.random() < ALONE)


HOSTILE_SQL = (
    "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c",
    "CREATE TRIGGER t AFTER UPDATE ON properties BEGIN DELETE FROM documents; END",
    "CREATE TRIGGER t BEFORE INSERT ON documents BEGIN SELECT load_extension('/tmp/x.so'); END",
    "CREATE TRIGGER t AFTER INSERT ON mentions BEGIN SELECT writefile('/tmp/x', 'x'); END",
    "ALTER TABLE documents RENAME TO d; CREATE VIEW documents AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x "
    "FROM c) SELECT x AS row, x AS id, x AS content_hash, 1 AS extractor, '' AS title, '' AS source, '{}' AS metadata, "
    "'[]' AS headings, 1 AS characters, '' AS text FROM c",
    "ALTER TABLE properties RENAME TO p; CREATE VIEW properties AS SELECT name, value FROM p",
    "CREATE INDEX i ON documents (hex(zeroblob(1000000)))",
    "CREATE TABLE extra (x, y AS (hex(zeroblob(1000000))))",
    "CREATE VIRTUAL TABLE r USING rtree(a, b, c)",
    "CREATE VIRTUAL TABLE f USING fts5(x, content='documents')",
    "DROP TABLE aliases",
    "DROP TABLE search",
    "DROP INDEX mentions_by_entity",
    "DELETE FROM properties WHERE name = 'generation'",
    "UPDATE properties SET value = x'ff' WHERE name IN ('state', 'store')",
    "UPDATE properties SET value = 1e300 WHERE name = 'generation'",
    "UPDATE properties SET value = 'x' WHERE name = 'generation'",
    "UPDATE properties SET value = '[' WHERE name = 'encoder'",
    """UPDATE properties SET value = '{"name":1,"version":[],"dimension":-5,"fingerprint":0}' WHERE name = 'encoder'""",
    """UPDATE properties SET value = '{"name":"none","version":"1","dimension":1e99,"fingerprint":"x"}' """
    "WHERE name = 'encoder'",
    "UPDATE properties SET value = printf('%.*c', 100000, '[') WHERE name = 'encoder'",
    "INSERT INTO properties VALUES ('next_encoder', '{}')",
    "UPDATE properties SET value = NULL",
    "PRAGMA user_version = 99",
    "PRAGMA user_version = -1",
    "PRAGMA user_version = 1",
    "PRAGMA user_version = 0",
    "PRAGMA application_id = 1",
    "DELETE FROM search_data",
    "DELETE FROM search_docsize",
    "UPDATE search_data SET block = randomblob(100)",
    "UPDATE search_config SET v = 99",
    "DELETE FROM chunks",
    "DELETE FROM entities",
    "UPDATE chunks SET document = 99",
    "UPDATE mentions SET entity = 99",
    "UPDATE mentions SET start = -5, stop = 1000000",
    "UPDATE mentions SET field = 7",
    "UPDATE mentions SET about = 99",
    "UPDATE mentions SET told = -1, length = 1000000000, description = NULL",
    "UPDATE mentions SET importance = -1000000000000",
    "UPDATE chunks SET vector = x''",
    "UPDATE chunks SET vector = x'007c' WHERE row = 1",
    "UPDATE chunks SET words = x'01'",
    "UPDATE chunks SET ordinal = ordinal + 1000000000000",
    "UPDATE chunks SET start = -9223372036854775808, stop = 9223372036854775807",
    "UPDATE documents SET metadata = '[]'",
    "UPDATE documents SET metadata = '5'",
    "UPDATE documents SET metadata = '{\"a\":1e999}'",
    "UPDATE documents SET metadata = printf('%.*c', 900, '[') || printf('%.*c', 900, ']')",
    "UPDATE documents SET headings = '{}'",
    "UPDATE documents SET headings = '[[1]]'",
    "UPDATE documents SET headings = '[[\"a\", 7, null, {}]]'",
    "UPDATE documents SET text = CAST(x'ff00fe' AS TEXT)",
    "UPDATE documents SET title = 'a' || char(0) || 'b', id = 'x' || char(0) || row",
    "UPDATE documents SET id = id || CAST(x'eda080' AS TEXT)",
    "UPDATE documents SET characters = -1",
    "UPDATE documents SET extractor = 99",
    "UPDATE entities SET key = key || CAST(x'ff' AS TEXT)",
    "UPDATE entities SET key = ''  WHERE row = 1",
    "UPDATE aliases SET one = ''",
    "UPDATE chunks SET headings = '[1, null, {}]'",
    "UPDATE chunks SET headings = '7'",
    "UPDATE extractors SET identity = char(27) || '[31m'",
    "UPDATE mentions SET type = char(27) || '[31m' || char(10)",
    "INSERT INTO failures SELECT row, char(27) || '[31m' FROM chunks LIMIT 1",
    "INSERT INTO next_vectors SELECT row, x'00' FROM chunks LIMIT 1",
)
SIDE_FILES = ("-wal", "-journal", "-shm", "-cache", "-vectors", "-ledger")


def damaged(arena: Arena, rng: random.Random) -> str:
    """A store that was made, or changed, to do harm."""
    kind = rng.randrange(10)
    if kind < 7:
        with closing(apsw.Connection(str(arena.store))) as connection:
            connection.execute("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
            for statement in rng.sample(HOSTILE_SQL, rng.choice((1, 1, 1, 2))):
                with contextlib.suppress(apsw.Error):
                    connection.execute(statement)
    elif kind < 9:
        data = bytearray(arena.store.read_bytes())
        for _ in range(rng.choice((1, 3, 50, 1000))):
            data[rng.choice((rng.randrange(100), rng.randrange(len(data))))] = rng.randrange(256)
        cut = rng.choice((len(data), len(data), rng.randrange(len(data))))
        arena.store.write_bytes(data[:cut])
    else:
        arena.store.write_bytes(rng.choice((hostile.content(rng), b"SQLite format 3\0" + rng.randbytes(4096))))
    ends = [_use(arena, rng) for _ in range(2)]
    return ends[0]


def beside(arena: Arena, rng: random.Random) -> str:
    """Side files that are not what they should be: bytes, folders, pipes, links to elsewhere."""
    command(["recall", "Where was Curie born?"])
    for suffix in rng.sample(SIDE_FILES, rng.choice((1, 1, 2))):
        path = arena.work / f"{STORE}{suffix}"
        if path.exists():
            path.unlink()
        rng.choice(
            (
                lambda path=path: path.write_bytes(hostile.content(rng)),
                lambda path=path: path.write_bytes((2**62).to_bytes(8, "little") + b"x" * 50),
                lambda path=path: path.write_bytes((100_000).to_bytes(8, "little") + b"[" * 100_000),
                lambda path=path: path.mkdir(),
                lambda path=path: os.mkfifo(path),
                lambda path=path: path.symlink_to(path.name),
                lambda path=path: path.symlink_to("/dev/zero"),
                lambda path=path: path.symlink_to(arena.root / "outside" / "x"),
                lambda path=path: path.symlink_to(arena.root / "outside" / "new"),
                lambda path=path: path.symlink_to(arena.root / "home" / ".profile"),
            )
        )()
    ends = [_use(arena, rng) for _ in range(2)]
    return ends[0]


def _use(arena: Arena, rng: random.Random) -> str:
    """Any command on the store, as it now is."""
    extra = arena.work / "in.txt"
    extra.write_text("Ada Lovelace met Charles Babbage.")
    return command(
        rng.choice(
            (
                ["list", *_json(rng)],
                ["status", *_json(rng)],
                ["recall", "Where was Marie Curie born?", *_json(rng)],
                ["recall", "Where was Marie Curie born?", "--explain"],
                ["recall", "Where was Marie Curie born?", "--where", "lang=en"],
                ["ask", "Who directed Jaws?", *_json(rng)],
                ["show", "warsaw", *_json(rng)],
                ["verify", *_json(rng)],
                ["verify", "--deep", *_json(rng)],
                ["repair", *_json(rng)],
                ["export", "--vectors"],
                ["export", "-o", "out.jsonl", "--json"],
                ["backup", f"out{rng.randrange(10**6)}"],
                ["add", "in.txt", *_json(rng)],
                ["forget", "curie"],
                ["add", "--retry"],
                ["reembed", "--encoder", "none"],
            )
        ),
        alone=rng.random() < ALONE,
    )


LARGE = 10 * 2**20
LARGE_ATOMS = ("a", " ", "[", '{"a":', '"', "\\", "\n", "1", "\ud800", "\0", "\u202e", "(", "A.", "- ", "\x1b[31m")


def large(arena: Arena, rng: random.Random) -> str:
    """Ten megabytes at once, most of it on one line."""
    atom = rng.choice(LARGE_ATOMS)
    text = "Ada Lovelace. " + atom * (LARGE // len(atom))
    data = text.encode("utf-8", "surrogatepass")
    way = rng.randrange(7)
    if way < 4:  # refused, all of them, by what they are and not for their size
        name, begin, end = (
            ("in.jsonl", b'{"text": "a", "b": ', b""),
            ("in.json", b'[{"text": "', b'\xff"}]'),
            ("in.toml", b"a = ", b""),
            ("in.txt", b"\xff", b""),
        )[way]
        (arena.work / name).write_bytes(begin + data + end)
        if name == "in.toml":
            return command(["list", "--config", name])
        return command([rng.choice(("add", "import")), name], alone=rng.random() < 0.3)
    with arena.opened(rng) as memory:
        if way == 4:
            memory.recall(text[: LARGE // 10] if atom in {"A.", "1", "a"} else text)
        elif way == 5:
            memory.documents({text: text})
        else:
            report = memory.add([{"id": text, "text": "a"}, {"title": text, "text": "a"}, {"text": "a", text: 1e999}])
            assert not report.added
            assert max(len(one.reason) + len(one.source) for one in report.failed) < 2000
    return "taken"


DOORS: dict[str, tuple[int, Door]] = {
    "add": (14, add_items),
    "file": (16, files),
    "folder": (8, folders),
    "stdin": (8, streams),
    "question": (10, queries),
    "filter": (7, filters),
    "import": (13, lines),
    "settings": (6, settings),
    "command": (8, arguments),
    "store": (8, damaged),
    "beside": (2, beside),
    "large": (0, large),
}
"""Each with its share."""


def cases(count: int, seed: int) -> Iterator[tuple[str, int]]:
    """So many doors and seeds, in the shares of :data:`DOORS`."""
    rng = random.Random(seed)
    names, weights = list(DOORS), [weight for weight, _ in DOORS.values()]
    for _ in range(count):
        yield rng.choices(names, weights)[0], rng.randrange(2**32)
