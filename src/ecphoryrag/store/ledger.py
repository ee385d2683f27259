"""The ledger: replies and vectors that were paid for, and what was spent, in an SQLite file beside the store."""

from __future__ import annotations

import glob
import hashlib
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar, get_args

import apsw
import numpy as np
from numpy.typing import NDArray

from ecphoryrag.errors import NotAStore, StoreBusy, StoreDamaged, StoreError, StoreReadOnly, StoreTooNew
from ecphoryrag.ports import Vectors
from ecphoryrag.store import sql
from ecphoryrag.store.connections import COMPANIONS, beside, transaction
from ecphoryrag.store.ledger_file import ASIDE, LedgerFile, open_file, put_aside
from ecphoryrag.store.scrubbing import scrub_file
from ecphoryrag.store.standing import inode
from ecphoryrag.store.traces import held
from ecphoryrag.types import Generation, Purpose, Spending, Usage

T = TypeVar("T")

LEDGER = "-ledger"
"""What is added to the store's name."""
HISTORY = 1000
"""Replies that a history holds, at most: more change no estimate."""
FLOAT = "<f4"
CHECKSUM_BYTES = 8
USAGE = "calls, input_tokens, output_tokens, embedding_tokens, seconds, estimated, cached"
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)

DAMAGED = (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError, StoreDamaged, NotAStore)
"""The file is no ledger, or no longer one."""
FAILING = (
    *(apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.PermissionsError),
    *(apsw.CantOpenError, apsw.TooBigError, apsw.NoMemError, StoreTooNew),
)
"""The file cannot be used now, by no fault of what it holds."""


def open_ledger(store_path: Path, *, writable: bool = True) -> SqliteLedger:
    """The ledger of the store at this path. Its file is made when something is first kept, and not before.

    Never fails for what is wrong with the file: see :attr:`SqliteLedger.notices`.
    """
    path = Path(store_path)
    with suppress(OSError):
        if path.is_symlink():  # beside what it points to, as the store's other files
            path = Path(os.path.realpath(path))
    return SqliteLedger(beside(path, LEDGER), writable=writable)


class SqliteLedger:
    """See :class:`ecphoryrag.ports.Ledger`; one instance may be used from several threads, and one file by several
    processes.

    What cannot be read counts as not kept and what cannot be written is dropped and counted: the ledger saves money,
    and never costs a job. Only :meth:`forget` raises, if it cannot do what was asked.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self._path = path
        self._writable = writable
        self._lock = threading.Lock()
        self._file: LedgerFile | None = None
        self._seen = (0, 0)
        """Which file was at the path when it was last opened."""
        self._notices: dict[str, None] = {}
        self._dropped = 0
        self._later = False
        """Whether a file of a later version was found, of which the notice says that nothing is kept in it."""
        self._closed = False

    @property
    def path(self) -> Path:
        """Where its file is, or would be."""
        return self._path

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user must be told, each once: a damaged file that was put aside, one that cannot be written."""
        return tuple(self._notices)

    @property
    def dropped(self) -> int:
        """How often something was to be kept or added to the spending and could not be."""
        return self._dropped

    def find(self, key: str) -> Generation | None:
        """The reply kept under this key, with the usage it had when it was paid for."""
        return self._read(lambda file: self._find(file, key), None)

    def keep(self, key: str, reply: Generation, purpose: Purpose, model: str, documents: Sequence[str] = ()) -> None:
        """Keep a reply that was accepted, made of the text of these documents, and add its usage to the spending.

        It takes the place of one under the same key, and is then forgotten with the documents of both.
        """
        words = (_text(key), purpose, _text(model), reply.text.encode("utf-8", "surrogatepass"))
        row = (*words, _text(reply.finish_reason), *_figures(reply.usage))

        def do(file: LedgerFile) -> None:
            _spend(file, purpose, model, reply.usage)
            _insert(file, row, documents)

        self._write(do)

    def find_vectors(self, keys: Sequence[str]) -> list[NDArray[np.float32] | None]:
        """For each key the vector kept under it."""
        return self._read(lambda file: [self._find_vector(file, key) for key in keys], [None] * len(keys))

    def keep_vectors(self, keys: Sequence[str], vectors: Vectors, cost: Spending, *, lasting: bool) -> None:
        """Keep vectors (len(keys), d) that were paid for, and add the cost to the spending; those not ``lasting`` until
        dropped. One that was kept as lasting before stays so."""
        if len(keys) != len(vectors):
            raise ValueError(f"{len(keys)} keys and {len(vectors)} vectors")
        blobs = [vector.tobytes() for vector in np.ascontiguousarray(vectors, FLOAT)]
        rows = [(_text(key), lasting, blob, _checksum(_text(key), blob)) for key, blob in zip(keys, blobs, strict=True)]

        def do(file: LedgerFile) -> None:
            _spend(file, cost.purpose, cost.model, cost.usage)
            file.connection.executemany(
                "INSERT INTO vectors VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "lasting = max(lasting, excluded.lasting), vector = excluded.vector, checksum = excluded.checksum",
                rows,
            )

        self._write(do)

    def drop_vectors(self) -> None:
        """Remove the vectors that are not lasting: what they were paid for is in the store."""
        with self._lock, self._surviving():
            file = self._opened(create=False)
            if file is not None and file.writable:
                _in_one_transaction(file, _drop_vectors)

    def spend(self, purpose: Purpose, model: str, usage: Usage) -> None:
        """Add to the spending what was paid for a reply that was not accepted."""
        self._write(lambda file: _spend(file, purpose, model, usage))

    def spending(self) -> tuple[Spending, ...]:
        """All that was ever spent, by purpose and model, in their order."""

        def do(file: LedgerFile) -> tuple[Spending, ...]:
            found = sql.rows(file.connection, f"SELECT purpose, model, {USAGE} FROM spending")  # noqa: S608
            spent = [Spending(_purpose(purpose), model, _usage(figures)) for purpose, model, *figures in found]
            return tuple(sorted(spent, key=lambda one: (PURPOSES.index(one.purpose), one.model)))

        return self._read(do, ())

    def history(self, purpose: Purpose, model: str) -> tuple[tuple[str, Usage], ...]:
        """(key, usage) of the accepted replies for this purpose by this model, newest first, at most ``HISTORY``.

        One whose cost was told before it was accepted says nothing of what replies cost, and is left out.
        """

        def do(file: LedgerFile) -> tuple[tuple[str, Usage], ...]:
            found = sql.rows(
                file.connection,
                f"SELECT key, {USAGE} FROM replies "  # noqa: S608
                "WHERE model = ? AND purpose = ? AND calls > 0 ORDER BY row DESC LIMIT ?",
                (_text(model), purpose, HISTORY),
            )
            return tuple((key, _usage(figures)) for key, *figures in found)

        return self._read(do, ())

    def forget(self, documents: Sequence[str]) -> None:
        """Remove the replies that were made of the text of these documents, unreadably.

        Raises StoreReadOnly, StoreBusy, StoreTooNew or StoreError if they are, or may be, still there.
        """
        self._surely(lambda file: _forget(file, documents))

    def rename(self, document: str, new: str) -> None:
        """Let the replies that were made of this document be forgotten under its new id too. Raises as ``forget``."""
        self._surely(lambda file: _in_one_transaction(file, lambda file: _rename(file, document, new)))

    def scrub(self, needles: Sequence[bytes]) -> int:
        """Remove every reply in which one of these bytes stands, and the vectors that no store has yet, unreadably.

        Returns how many replies. For an erasure: a reply may tell of a document that it was not made of. Raises as
        :meth:`forget` does.
        """
        return self._surely(lambda file: scrub_file(file, needles)) or 0

    def held(self, needles: Sequence[bytes]) -> dict[int, str]:
        """For each of these bytes, by its number, that a row still holds, the table."""
        return self._read(lambda file: held(file.connection, needles), {})

    def _surely(self, do: Callable[[LedgerFile], T]) -> T | None:
        """Do it, or raise what keeps it from being done; None if there is no ledger."""
        with self._lock:
            self._warn_of_aside()
            try:
                file = self._opened(create=False)
                if file is None:
                    return None
                if not file.writable:
                    raise StoreReadOnly(
                        f"{self._remains()}: it cannot be written. Check its permissions, or remove it."
                    )
                return do(file)
            except DAMAGED as error:
                if not self._put_aside(error):
                    raise StoreError(f"{self._remains()}: {error}. Move it away, then forget them again.") from error
                return None
            except (apsw.BusyError, apsw.LockedError) as error:
                raise StoreBusy(
                    f"{self._remains()}: it is in use. Forget them again when the other process has ended."
                ) from error
            except StoreTooNew as error:
                raise StoreTooNew(f"{self._remains()}. {error}") from error
            except FAILING as error:
                raise StoreError(f"{self._remains()}: {error}. Forget them again, or remove it.") from error

    def _remains(self) -> str:
        return f"The ledger {self._path} may still hold replies made of these documents"

    def close(self) -> None:
        """Release the file; calling it twice is harmless."""
        with self._lock:
            self._closed = True
            self._release()

    def _read(self, do: Callable[[LedgerFile], T], nothing: T) -> T:
        """What is read from the file; ``nothing`` if it is not there or cannot be read."""
        found = nothing
        with self._lock, self._surviving():
            file = self._opened(create=False)
            if file is not None:
                found = do(file)
        return found

    def _write(self, do: Callable[[LedgerFile], None]) -> None:
        """Write in one transaction, into a new file if this one turns out to be damaged; or count it as dropped."""
        with self._lock:
            for _ in range(2):
                written = False
                with self._surviving():
                    written = self._written(do)
                if written:
                    return
                if self._file is not None:
                    break  # it is sound, so that trying again would only fail again
            self._dropped += 1
            if self._writable and not self._later:
                self._note(
                    f"The ledger {self._path} cannot be written: what is paid for now is not kept, and would be paid "
                    "for again. Check the disk and the permissions of its folder."
                )

    def _written(self, do: Callable[[LedgerFile], None]) -> bool:
        """Whether it could be written."""
        file = self._opened(create=True)
        if file is None or not file.writable:
            return False
        _in_one_transaction(file, do)
        return True

    def _opened(self, *, create: bool) -> LedgerFile | None:
        """The file, opened if it is not or is another by now; the caller holds the lock."""
        if self._closed:
            raise StoreError(f"The ledger {self._path} has been closed; open it again.")
        if self._file is not None and not self._file.standing.holds():
            self._release()
        if self._file is None:
            self._seen = inode(self._path)
            store = self._path.with_name(self._path.name.removesuffix(LEDGER))
            self._file = open_file(self._path, writable=self._writable, create=create and self._writable, store=store)
        return self._file

    def _release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    @contextmanager
    def _surviving(self) -> Iterator[None]:
        """Note what is wrong with the file rather than raise it, and put a damaged one aside."""
        try:
            yield
        except DAMAGED as error:
            self._put_aside(error)
        except StoreTooNew as error:
            self._later = True
            self._note(str(error))
        except FAILING as error:
            self._note(f"The ledger {self._path} failed: {error}. What it keeps may be paid for again.")

    def _put_aside(self, error: Exception) -> bool:
        """Put the file aside that was found to be damaged; not one that another process has put in its place since.

        False if it could not be, so that it is still there.
        """
        seen = self._seen if self._file is None else self._file.standing.inode
        self._release()
        if inode(self._path) != seen:
            return True
        found = f"The ledger {self._path} is damaged, or none ({error}), and is not used"
        lost = "What was paid for before may be paid for again, and is not in the spending"
        try:
            if not self._writable:
                raise PermissionError("it was opened read-only")
            target = put_aside(self._path)
        except OSError as reason:
            self._note(f"{found}. {lost}. It could not be renamed ({reason.strerror or reason}): move it away.")
            return False
        self._note(f"{found}: it is now {target}. {lost}. {_KEPT_ASIDE}")
        return True

    def _warn_of_aside(self) -> None:
        """What was put aside cannot be searched for what is to be forgotten."""
        for file in sorted(self._path.parent.glob(glob.escape(self._path.name + ASIDE) + "*")):
            if not file.name.endswith(COMPANIONS):
                self._note(f"The damaged ledger {file} was put aside. {_KEPT_ASIDE}")

    def _note(self, notice: str) -> None:
        self._notices[notice] = None

    def _find(self, file: LedgerFile, key: str) -> Generation | None:
        query = f"SELECT key, purpose, model, text, finish_reason, {USAGE}, checksum FROM replies WHERE key = ?"  # noqa: S608
        found = sql.row(file.connection, query, (_text(key),))
        if found is None or not self._sound(*found):
            return None
        _, _, _, text, finish_reason, *figures, _ = found
        return Generation(text.decode("utf-8", "surrogatepass"), finish_reason, _usage(figures))

    def _find_vector(self, file: LedgerFile, key: str) -> NDArray[np.float32] | None:
        found = sql.row(file.connection, "SELECT key, vector, checksum FROM vectors WHERE key = ?", (_text(key),))
        if found is None or not self._sound(*found):
            return None
        return np.frombuffer(found[1], FLOAT).astype(np.float32)

    def _sound(self, *row: object) -> bool:
        """Whether the row is as it was written: its last column is the checksum of the others."""
        *values, checksum = row
        if checksum == _checksum(*values):
            return True
        self._note(f"An entry of the ledger {self._path} is damaged and not used: what it held will be paid for again.")
        return False


_KEPT_ASIDE = "It may hold replies made of documents that were forgotten since: remove it when you need it no more."


def _in_one_transaction(file: LedgerFile, do: Callable[[LedgerFile], None]) -> None:
    file.log()
    with transaction(file.connection, "IMMEDIATE"):
        do(file)


def _insert(file: LedgerFile, row: tuple[str | bytes | float, ...], documents: Sequence[str]) -> None:
    """Insert the reply, its key first, in place of one of this key."""
    linked = {file.document(id_) for id_ in documents}
    before = sql.value(file.connection, "SELECT row FROM replies WHERE key = ?", row[:1])
    if before is not None:
        known = sql.rows(file.connection, "SELECT document FROM sources WHERE reply = ?", (before,))
        linked.update(document for (document,) in known)
        file.connection.execute("DELETE FROM replies WHERE row = ?", (before,))
    file.connection.execute(
        f"INSERT INTO replies (key, purpose, model, text, finish_reason, {USAGE}, checksum) "  # noqa: S608
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*row, _checksum(*row)),
    )
    number = file.connection.last_insert_rowid()
    file.connection.executemany("INSERT INTO sources VALUES (?, ?)", [(number, document) for document in linked])


def _spend(file: LedgerFile, purpose: str, model: str, usage: Usage) -> None:
    file.connection.execute(
        f"INSERT INTO spending (purpose, model, {USAGE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608
        "ON CONFLICT (purpose, model) DO UPDATE SET calls = calls + excluded.calls, "
        "input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens, "
        "embedding_tokens = embedding_tokens + excluded.embedding_tokens, seconds = seconds + excluded.seconds, "
        "estimated = max(estimated, excluded.estimated), cached = cached + excluded.cached",
        (purpose, _text(model), *_figures(usage)),
    )


def _drop_vectors(file: LedgerFile) -> None:
    file.connection.execute("DELETE FROM vectors WHERE NOT lasting")


def _forget(file: LedgerFile, documents: Sequence[str]) -> None:
    """Delete the replies and every trace of them. Raises apsw.BusyError if others use the file for too long."""
    hashed = [(file.document(id_),) for id_ in documents]

    def do(file: LedgerFile) -> None:
        before = file.connection.total_changes()
        file.connection.executemany(
            "DELETE FROM replies WHERE row IN (SELECT reply FROM sources WHERE document = ?)", hashed
        )
        if file.connection.total_changes() != before:
            file.note_traces()

    _in_one_transaction(file, do)
    file.remove_traces()


def _rename(file: LedgerFile, document: str, new: str) -> None:
    file.connection.execute(
        "INSERT OR IGNORE INTO sources SELECT reply, ? FROM sources WHERE document = ?",
        (file.document(new), file.document(document)),
    )


def _figures(usage: Usage) -> tuple[int | float, ...]:
    """The usage in the columns' order and types."""
    seconds = float(usage.seconds)
    return (
        *(int(usage.calls), int(usage.input_tokens), int(usage.output_tokens), int(usage.embedding_tokens)),
        *(seconds if math.isfinite(seconds) else 0.0, int(usage.estimated), int(usage.cached)),
    )


def _usage(figures: Sequence[object]) -> Usage:
    """The usage again. Raises StoreDamaged."""
    match figures:
        case [int(calls), int(read), int(written), int(embedded), float(seconds), int(estimated), int(cached)]:
            return Usage(calls, read, written, embedded, seconds, bool(estimated), cached)
    raise StoreDamaged("an entry of the spending is not of numbers")


def _purpose(name: str) -> Purpose:
    for purpose in PURPOSES:
        if purpose == name:
            return purpose
    raise StoreDamaged("an entry of the spending is of no known purpose")


def _checksum(*values: object) -> bytes:
    return hashlib.blake2b(repr(values).encode("utf-8", "surrogatepass"), digest_size=CHECKSUM_BYTES).digest()


def _text(value: str) -> str:
    """As SQLite can hold it: a lone surrogate, which is no Unicode, is spelt out."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")
