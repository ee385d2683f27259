"""The ledger as a file: when it is made, what survives accidents and other processes, and what can be read in it."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import numpy as np
import pytest

from ecphoryrag.errors import StoreBusy, StoreError, StoreReadOnly
from ecphoryrag.store import connections, ledger_file
from ecphoryrag.store.ledger import SqliteLedger, open_ledger
from ecphoryrag.store.ledger_file import APPLICATION_ID, FORMAT
from ecphoryrag.types import Generation, Spending, Usage

ROOT = Path(__file__).parents[2]
COST = Spending("embed", "e", Usage(1, 0, 0, 5))
VECTORS = np.arange(32, dtype=np.float32).reshape(2, 16)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store would be."""
    return tmp_path / "test.ecphory"


@contextlib.contextmanager
def opened(store: Path, *, writable: bool = True) -> Iterator[SqliteLedger]:
    ledger = open_ledger(store, writable=writable)
    try:
        yield ledger
    finally:
        ledger.close()


def ledger_of(store: Path) -> Path:
    return store.parent / (store.name + "-ledger")


def files(store: Path) -> list[str]:
    return sorted(file.name.removeprefix(store.name) for file in store.parent.iterdir())


def reply(text: str = "yes") -> Generation:
    return Generation(text, "stop", Usage(1, 10, 5, 0, 0.5))


def fill(store: Path, count: int = 60) -> None:
    with opened(store) as ledger:
        for number in range(count):
            ledger.keep(f"k{number}", reply(f"reply {number}"), "index", "m", [f"d{number}"])
        ledger.keep_vectors(["v0", "v1"], VECTORS, COST, lasting=True)


def assert_filled(store: Path, count: int = 60, *, writable: bool = True) -> None:
    with opened(store, writable=writable) as ledger:
        assert [ledger.find(f"k{number}") for number in range(count)] == [reply(f"reply {n}") for n in range(count)]
        assert len(ledger.spending()) == 2
        assert ledger.notices == ()


def test_the_file_is_made_when_something_is_kept_and_not_before(store: Path) -> None:
    with opened(store) as ledger:
        ledger.find("k")
        ledger.find_vectors(["k"])
        ledger.spending()
        ledger.history("index", "m")
        ledger.forget(["a"])
        ledger.drop_vectors()
        assert files(store) == []
        ledger.spend("index", "m", Usage(1))
        assert "-ledger" in files(store)
    assert files(store) == ["-ledger"], "at rest it is one file"


def test_it_lies_beside_what_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.ecphory").symlink_to(tmp_path / "there" / "real.ecphory")
    (tmp_path / "there" / "real.ecphory").touch()
    with opened(tmp_path / "link.ecphory") as ledger:
        ledger.spend("index", "m", Usage(1))
        assert ledger.path == tmp_path / "there" / "real.ecphory-ledger"


@pytest.mark.parametrize("name", ["a b#c?d%20e&mode=ro", "käse 東京", "file:x", "'q\".db"])
def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    fill(tmp_path / name)
    assert_filled(tmp_path / name)
    assert_filled(tmp_path / name, writable=False)
    assert files(tmp_path / name) == ["-ledger"]


def test_the_file_says_what_it_is(store: Path) -> None:
    fill(store)
    with sqlite3.connect(ledger_of(store)) as plain:
        assert plain.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert plain.execute("PRAGMA user_version").fetchone() == (FORMAT,)
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert plain.execute("PRAGMA foreign_key_check").fetchall() == []
    plain.close()


def test_after_closing_nothing_can_be_done(store: Path) -> None:
    with opened(store) as ledger:
        ledger.keep("k", reply(), "index", "m")
    with pytest.raises(StoreError, match="closed"):
        ledger.keep("k", reply(), "index", "m")
    with pytest.raises(StoreError, match="closed"):
        ledger.find("k")


# What can be read in it


def traces(store: Path, word: str) -> list[str]:
    return [file.name for file in store.parent.iterdir() if word.encode() in file.read_bytes()]


def test_ids_of_documents_are_not_in_it(store: Path) -> None:
    with opened(store) as ledger:
        ledger.keep("k", reply(), "index", "m", ["quagmire-4711"])
        assert traces(store, "quagmire") == []
    copy = store.parent / "other.ecphory"
    with opened(copy) as ledger:
        ledger.keep("k", reply(), "index", "m", ["quagmire-4711"])
    stand_for = []
    for path in (store, copy):
        with sqlite3.connect(ledger_of(path)) as plain:
            stand_for.append(plain.execute("SELECT document FROM sources").fetchone())
        plain.close()
    assert stand_for[0] != stand_for[1], "whoever knows an id could look for it in any ledger"


@pytest.mark.parametrize("seed", range(4))
def test_what_was_forgotten_is_gone_from_every_byte(store: Path, seed: int) -> None:
    """Replies of all lengths, so that pages of the file are filled, split, joined and emptied, with others reading."""
    chance = random.Random(seed)

    def text(number: int) -> str:
        return f"mark{number}end " * chance.choice([1, 3, 20, 200, 900])

    with opened(store) as ledger, opened(store) as other, opened(store, writable=False) as reader:
        there: set[int] = set()
        for number in range(300):
            ledger.keep(f"key{number}end", reply(text(number)), "index", "m", [f"d{number}"])
            there.add(number)
            other.find(f"key{number}end")
            if number % 7 == 0:
                ledger.keep(f"key{number}end", reply(text(number)), "index", "m", [f"d{number}"])
            if number % 50 == 49:
                gone = chance.sample(sorted(there), len(there) // 2)
                there.difference_update(gone)
                (ledger if number % 100 == 49 else other).forget([f"d{one}" for one in gone])
                data = b"".join(file.read_bytes() for file in store.parent.iterdir())
                for one in range(number + 1):
                    assert (f"mark{one}end".encode() in data) == (one in there)
                    assert (f"key{one}end".encode() in data) == (one in there)
                    assert (reader.find(f"key{one}end") is not None) == (one in there)


def test_what_cannot_be_forgotten_is_said(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    refused = pytest.raises(StoreReadOnly, match=r"test\.ecphory-ledger.*may still")
    with opened(store, writable=False) as ledger, refused:
        ledger.forget(["d1"])
    monkeypatch.setattr(ledger_file, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    with opened(store) as ledger, opened(store) as reader:
        ledger.spend("index", "m", Usage(1))
        reader.find("k1")
        assert reader._file is not None
        with connections.transaction(reader._file.connection, "DEFERRED"):
            reader._file.connection.execute("SELECT count(*) FROM replies").fetchall()
            with pytest.raises(StoreBusy, match="may still hold"):
                ledger.forget(["d1"])
        assert traces(store, "reply 1stop"), "as a row holds it; the reader kept it from being removed"
        ledger.forget(["d1"])
        assert traces(store, "reply 1stop") == []


def test_a_forgetting_that_was_killed_half_way_is_completed(store: Path) -> None:
    fill(store)
    code = """
        ledger.find("k1")
        type(ledger._file).remove_traces = lambda file: os.kill(os.getpid(), 9)
        ledger.forget(["d1"])
    """
    with running(f"import os\n{textwrap.dedent(code)}", store) as (one,):
        assert one.wait(20) == -9
    assert traces(store, "reply 1stop")
    with opened(store) as ledger:
        assert ledger.find("k1") is None
        assert traces(store, "reply 1stop") == []
    assert_kept(store, [])


# What cannot be written


def test_opened_read_only_it_finds_and_drops(store: Path) -> None:
    with opened(store, writable=False) as ledger:
        ledger.keep("k", reply(), "index", "m")
        assert (ledger.find("k"), ledger.dropped) == (None, 1)
    assert files(store) == []
    fill(store)
    before = ledger_of(store).read_bytes()
    assert_filled(store, writable=False)
    with opened(store, writable=False) as ledger:
        ledger.keep("new", reply(), "index", "m")
        ledger.keep_vectors(["v"], VECTORS[:1], COST, lasting=True)
        ledger.spend("index", "m", Usage(1))
        ledger.drop_vectors()
        assert (ledger.find("new"), ledger.find("k1"), ledger.dropped) == (None, reply("reply 1"), 3)
        assert ledger.notices == (), "it was asked for"
    assert ledger_of(store).read_bytes() == before
    assert files(store) == ["-ledger"]


NOBODY = 65534


@contextlib.contextmanager
def as_a_reader_of(folder: Path) -> Iterator[None]:
    """The folder and its files cannot be written: for root, to whom nothing is forbidden, as another user."""
    for file in folder.iterdir():
        file.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    root = os.geteuid() == 0
    try:
        if root:
            os.setresuid(NOBODY, NOBODY, 0)
        yield
    finally:
        if root:
            os.setresuid(0, 0, 0)
        folder.chmod(stat.S_IRWXU)
        for file in folder.iterdir():
            file.chmod(stat.S_IRUSR | stat.S_IWUSR)


@pytest.mark.parametrize("there", ["missing", "at rest", "expecting a log"])
def test_on_a_disk_that_cannot_be_written_it_finds_drops_and_says_so(there: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "test.ecphory"
        if there != "missing":
            fill(store)
        if there == "expecting a log":
            connection = apsw.Connection(str(ledger_of(store)))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.close()
        with as_a_reader_of(Path(folder)), opened(store) as ledger:
            ledger.keep("new", reply(), "index", "m")
            assert ledger.find("new") is None
            assert (ledger.find("k1") is None) == (there == "missing")
            assert ledger.dropped == 1
            assert [notice.startswith(f"The ledger {ledger.path} cannot be written") for notice in ledger.notices]
            if there != "missing":
                with pytest.raises(StoreReadOnly):
                    ledger.forget(["d1"])
        assert files(store) == ([] if there == "missing" else ["-ledger"])


def test_a_full_disk_loses_what_is_new_and_no_more(store: Path) -> None:
    fill(store)
    with opened(store) as ledger:
        ledger.spend("index", "m", Usage(1))
        assert ledger._file is not None
        ledger._file.connection.execute("PRAGMA max_page_count = 1")  # no fewer than there are: none can be added
        ledger.keep("large", reply("x" * 100_000), "index", "m")
        ledger.keep("k1", reply("y" * 100_000), "index", "m")
        assert (ledger.dropped, len(ledger.notices)) == (2, 2)
        assert ledger.find("large") is None
        assert ledger.find("k1") == reply("reply 1"), "half of the exchange was made"
        assert "full" in ledger.notices[0]


def test_one_that_another_process_holds_for_long_is_passed_over(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    fill(store)
    holder = apsw.Connection(str(ledger_of(store)))
    holder.execute("BEGIN EXCLUSIVE")
    with opened(store) as ledger:
        began = time.monotonic()
        ledger.keep("new", reply(), "index", "m")
        assert time.monotonic() - began < 1
        assert (ledger.find("k1"), ledger.dropped) == (None, 1)
        assert "locked" in ledger.notices[0]
        holder.execute("ROLLBACK")
        holder.close()
        ledger.keep("new", reply(), "index", "m")
        assert (ledger.find("new"), ledger.dropped) == (reply(), 1)
    assert files(store) == ["-ledger"]


# What is damaged, or something else


def spoil(store: Path, how: str) -> None:
    path = ledger_of(store)
    fill(store)
    if how == "text":
        path.write_bytes(b"x" * 5000)
    elif how == "short":
        path.write_bytes(b"x" * 10)
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:4096])
    elif how == "unknown file format":
        with path.open("r+b") as file:
            file.seek(47)
            file.write(b"\xff")
    elif how == "overwritten":
        data = bytearray(path.read_bytes())
        for page in range(1, len(data) // 4096):
            data[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
        path.write_bytes(data)
    else:
        queries = {
            "other database": "PRAGMA application_id = 7",
            "no tables": "DROP TABLE spending",
            "no salt": "DELETE FROM properties",
            "other columns": "ALTER TABLE replies ADD COLUMN more ANY",
        }
        with sqlite3.connect(path) as plain:
            plain.execute(queries[how])
        plain.close()


SPOILT = [
    "text",
    "short",
    "cut",
    "overwritten",
    "unknown file format",
    "other database",
    "no tables",
    "no salt",
    "other columns",
]


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("first", ["find", "keep", "forget"])
def test_a_damaged_file_is_put_aside_and_said(store: Path, how: str, first: str) -> None:
    spoil(store, how)
    before = ledger_of(store).read_bytes()
    with opened(store) as ledger:
        if first == "find":
            assert ledger.find("k1") is None
        elif first == "forget":
            ledger.forget(["d1"])
        ledger.keep("new", reply("new"), "index", "m")
        assert (ledger.find("new"), ledger.find("k1"), ledger.dropped) == (reply("new"), None, 0)
        (notice,) = ledger.notices
        assert f"is now {ledger_of(store)}-aside-1" in notice
        assert "may hold replies made of documents that were forgotten since" in notice
    assert files(store) == ["-ledger", "-ledger-aside-1"]
    aside = store.parent / "test.ecphory-ledger-aside-1"
    if how not in {"cut", "overwritten"}:  # which SQLite opens, and writes to, before it finds out
        assert aside.read_bytes() == before
    with opened(store) as ledger:
        assert ledger.find("new") == reply("new")
        assert "".join(ledger.notices) == ""
        ledger.forget(["d1"])
        assert str(aside) in "".join(ledger.notices)


def test_each_that_is_put_aside_has_its_own_name(store: Path) -> None:
    for number in range(1, 4):
        spoil(store, "text")
        with opened(store) as ledger:
            ledger.find("k")
        assert files(store) == [f"-ledger-aside-{one}" for one in range(1, number + 1)]


def test_a_damaged_file_that_cannot_be_put_aside_is_left_and_not_used(store: Path) -> None:
    spoil(store, "text")
    with opened(store, writable=False) as ledger:
        assert ledger.find("k1") is None
        ledger.keep("k1", reply(), "index", "m")
        assert ledger.dropped == 1
        assert "move it away" in ledger.notices[0]
    assert files(store) == ["-ledger"]


@pytest.mark.parametrize("what", ["newer", "folder"])
def test_one_that_is_not_for_us_is_left_alone(store: Path, what: str) -> None:
    if what == "folder":
        ledger_of(store).mkdir()
    else:
        fill(store)
        with sqlite3.connect(ledger_of(store)) as plain:
            plain.execute(f"PRAGMA user_version = {FORMAT + 1}")
        plain.close()
    before = b"" if what == "folder" else ledger_of(store).read_bytes()
    with opened(store) as ledger:
        assert ledger.find("k1") is None
        ledger.keep("k1", reply(), "index", "m")
        assert (ledger.find("k1"), ledger.dropped) == (None, 1)
        assert ledger.notices
        with pytest.raises(StoreError, match="may still hold"):
            ledger.forget(["d1"])
    assert files(store) == ["-ledger"]
    assert (b"" if what == "folder" else ledger_of(store).read_bytes()) == before


def test_an_empty_file_becomes_a_ledger(store: Path) -> None:
    ledger_of(store).touch()
    with opened(store) as ledger:
        assert ledger.find("k") is None
        ledger.keep("k", reply(), "index", "m")
        assert (ledger.find("k"), ledger.notices) == (reply(), ())


def test_no_flipped_bit_gives_a_wrong_reply_or_a_crash(store: Path) -> None:
    fill(store)
    good = ledger_of(store).read_bytes()
    chance = random.Random(5)
    wrong: set[str] = set()
    noticed = 0
    for at in [*range(0, 100, 2), *(chance.randrange(100, len(good)) for _ in range(60))]:
        flipped = bytearray(good)
        flipped[at] ^= 1 << chance.randrange(8)
        for file in store.parent.iterdir():
            file.unlink()
        ledger_of(store).write_bytes(flipped)
        with opened(store) as ledger:
            for number in range(60):
                if ledger.find(f"k{number}") not in {None, reply(f"reply {number}")}:
                    wrong.add(f"reply {number} at {at}")
            for vector, row in zip(ledger.find_vectors(["v0", "v1"]), VECTORS, strict=True):
                if vector is not None and not np.array_equal(vector, row):
                    wrong.add(f"vector at {at}")
            ledger.spending()
            ledger.history("index", "m")
            ledger.keep("new", reply("new"), "index", "m", ["new"])
            assert ledger.find("new") == reply("new") or ledger.dropped
            noticed += bool(ledger.notices)
    assert wrong == set()
    assert noticed > 20, "the flips hit nothing"


def test_damage_under_an_open_ledger_is_survived(store: Path) -> None:
    fill(store, 600)
    with opened(store) as ledger:
        assert ledger.find("k1") == reply("reply 1")
        with ledger_of(store).open("r+b") as file:
            file.write(b"\0" * ledger_of(store).stat().st_size)
        for number in range(600):
            assert ledger.find(f"k{number}") in {None, reply(f"reply {number}")}
        ledger.keep("new", reply("new"), "index", "m")
        assert ledger.find("new") == reply("new")


def test_a_ledger_that_another_process_put_aside_or_removed_is_followed(store: Path) -> None:
    fill(store)
    with opened(store) as old, opened(store) as new:
        old.keep("old", reply("old"), "index", "m")
        new.find("k1")
        ledger_file.put_aside(ledger_of(store))
        new.keep("new", reply("new"), "index", "m")
        old.keep("late", reply("late"), "index", "m")
        for ledger in (old, new):
            assert [ledger.find(key) for key in ("new", "late", "old")] == [reply("new"), reply("late"), None]
    assert_kept(store, ["new", "late"])
    with opened(store) as ledger:
        ledger.find("new")
        ledger_of(store).unlink()
        ledger.keep("again", reply("again"), "index", "m")
    assert_kept(store, ["again"])


def test_a_sound_file_in_the_place_of_a_damaged_one_is_not_put_aside(store: Path) -> None:
    fill(store)
    with opened(store) as ledger, opened(store) as faster:
        ledger.find("k1")
        ledger_file.put_aside(ledger_of(store))
        faster.keep("new", reply("new"), "index", "m")
        ledger._put_aside(apsw.CorruptError("found a moment ago"))
        assert (ledger.find("new"), ledger.notices) == (reply("new"), ())


def assert_kept(store: Path, keys: list[str]) -> None:
    with opened(store) as ledger:
        assert [ledger.find(key) for key in keys] == [reply(key) for key in keys]
        assert ledger.notices == ()


# Threads, processes, accidents


def test_sixteen_threads_lose_nothing_and_do_not_wait(store: Path) -> None:
    """80 calls a second is what 16 calls at once of 200 ms make; a twentieth of the time may go into keeping."""
    text = "x" * 2000
    with opened(store) as ledger, ThreadPoolExecutor(16) as pool:
        began = time.monotonic()
        list(pool.map(lambda n: ledger.keep(f"{n}", reply(text), "index", "m", [f"d{n % 50}"]), range(1600)))
        rate = 1600 / (time.monotonic() - began)
        assert all(pool.map(lambda n: ledger.find(f"{n}") == reply(text), range(1600)))
        (spent,) = ledger.spending()
        assert spent.usage == Usage(1600, 16_000, 8_000, 0, 800.0)
    assert rate > 800, f"{rate:.0f} a second"


def process(code: str, store: Path) -> subprocess.Popen[str]:
    program = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        import numpy as np
        from ecphoryrag.store.ledger import open_ledger
        from ecphoryrag.types import Generation, Spending, Usage
        ledger = open_ledger(Path(sys.argv[1]))
        def reply(text):
            return Generation(text, "stop", Usage(1, 10, 5, 0, 0.5))
        print("ready", flush=True)
        sys.stdin.readline()
        """
    ) + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", program, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )


@contextlib.contextmanager
def running(code: str, *stores: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that begin at the same moment."""
    started = [process(code, store) for store in stores]
    try:
        for one in started:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in started:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        yield started
    finally:
        for one in started:
            one.kill()
            one.communicate()


def test_two_processes_that_keep_at_once_lose_nothing(store: Path) -> None:
    """Not even in making the file; and a third thing is kept here meanwhile."""
    code = """
        import os
        for number in range(400):
            ledger.keep(f"{os.getpid()}-{number}", reply(f"{number}"), "index", "m", ["d"])
        print(os.getpid(), ledger.dropped, ledger.notices, flush=True)
        ledger.close()
    """
    with running(code, store, store) as both, opened(store) as ledger:
        for number in range(100):
            ledger.keep(f"own-{number}", reply(f"{number}"), "index", "m", ["d"])
        own = (ledger.dropped, ledger.notices)
        said = [(one.stdout.readline() if one.stdout else "").split(maxsplit=1) for one in both]
        assert [one.wait(20) for one in both] == [0, 0]
    assert own == (0, ())
    assert [rest for _, rest in said] == ["0 ()\n"] * 2
    with opened(store) as ledger:
        for pid, _ in said:
            assert [ledger.find(f"{pid}-{n}") for n in range(400)] == [reply(f"{n}") for n in range(400)]
        assert [ledger.find(f"own-{n}") for n in range(100)] == [reply(f"{n}") for n in range(100)]
        (spent,) = ledger.spending()
        assert spent.usage.calls == 900
    assert files(store) == ["-ledger"]


def test_what_was_kept_survives_a_killed_process(store: Path) -> None:
    """Killed at 15 random moments, the first of them soon after the file is made; each goes on with what was left.

    The processes are forked from one that has imported all they need, but opened nothing.
    """
    code = """
        import itertools, os
        def keep():
            for number in itertools.count():
                key = f"{os.getpid()}-{number}"
                if number % 5 == 4:
                    vector = np.full((1, 16), number, np.float32)
                    ledger.keep_vectors([key], vector, Spending("embed", "e", Usage(1)), lasting=True)
                else:
                    ledger.keep(key, reply(key * 50), "index", "m", ["d"])
                os.write(1, f"{key}\\n".encode())
        while True:
            pid = os.fork()
            if not pid:
                keep()
            os.write(1, f"process {pid}\\n".encode())
            os.waitpid(pid, 0)
            os.write(1, b"dead\\n")
            sys.stdin.readline()
    """
    chance = random.Random(9)
    kept: list[str] = []
    with running(code, store) as (parent,):
        assert parent.stdout is not None
        assert parent.stdin is not None
        for turn in range(15):
            while not (line := parent.stdout.readline()).startswith("process"):
                kept.append(line.strip())
            time.sleep(0.001 if turn == 0 else chance.random() * 0.1)
            os.kill(int(line.split()[1]), signal.SIGKILL)
            while (line := parent.stdout.readline()) != "dead\n":
                kept.append(line.strip())
            parent.stdin.write("\n")
            parent.stdin.flush()
        while not (line := parent.stdout.readline()).startswith("process"):
            kept.append(line.strip())
        os.kill(int(line.split()[1]), signal.SIGKILL)
    assert len(kept) > 100
    with opened(store) as ledger:
        for key in kept:
            number = int(key.split("-")[1])
            if number % 5 == 4:
                (vector,) = ledger.find_vectors([key])
                assert vector is not None
                assert vector.tolist() == [number] * 16
            else:
                assert ledger.find(key) == reply(key * 50)
        spent = {one.purpose: one.usage.calls for one in ledger.spending()}
        assert 0 <= sum(spent.values()) - len(kept) <= 16, "each may have been killed before it could say so"
        assert ledger.notices == ()


def test_a_copy_beside_another_store_is_as_good(store: Path) -> None:
    fill(store)
    copy = store.parent / "copy.ecphory"
    shutil.copy(ledger_of(store), ledger_of(copy))
    assert_filled(copy)


def test_threads_that_open_it_at_once_make_one_file(store: Path) -> None:
    ready = threading.Barrier(8)

    def keep(number: int) -> None:
        with opened(store) as ledger:
            ready.wait()
            ledger.keep(f"k{number}", reply(f"{number}"), "index", "m")
            assert (ledger.dropped, ledger.notices) == (0, ())

    run_all(keep, 8)
    with opened(store) as ledger:
        assert [ledger.find(f"k{number}") for number in range(8)] == [reply(f"{number}") for number in range(8)]


def run_all(do: Callable[[int], None], count: int) -> None:
    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(do, number) for number in range(count)]:
            future.result()
