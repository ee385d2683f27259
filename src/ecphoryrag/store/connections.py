"""Connections to a store's file: opening, checking what it is, transactions, a pool for readers."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import apsw

from ecphoryrag.errors import NotAStore, StoreDamaged, StoreError, StoreNotFound, StoreTooNew
from ecphoryrag.store.faults import translating
from ecphoryrag.store.guarded import check_schema, guard
from ecphoryrag.store.lexical import VOCABULARIES
from ecphoryrag.store.schema import APPLICATION_ID, FORMAT
from ecphoryrag.store.standing import Standing, check_one_name, check_own_log, leave_log

BUSY_SECONDS = 5.0
"""How long to wait for another writer: a transaction is one document, so milliseconds are usual."""
CHECKPOINT_PAGES = 4000
"""16 MB of write-ahead log before it is copied into the file: a checkpoint waits for the disk, so few are better."""
COMPANIONS = ("-wal", "-journal", "-shm")
"""What SQLite adds to the name of a file for those that it keeps beside it."""
IDLE_READERS = 8
"""Connections kept open for later readings; more are opened while needed."""


@contextmanager
def transaction(connection: apsw.Connection, kind: Literal["DEFERRED", "IMMEDIATE"]) -> Iterator[None]:
    """Commit what is done inside, or undo all of it, whatever happens."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def connect_writer(path: Path, *, create: bool, busy_seconds: float = BUSY_SECONDS) -> apsw.Connection:
    """A connection that may write, to a store of whatever format: see :func:`ecphoryrag.store.upgrade.open_writer`.

    Raises StoreNotFound, NotAStore, StoreTooNew, StoreBusy and StoreError.
    """
    check_path(path, create=create)
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    check_one_name(path)
    with translating(path):
        if path.exists():
            check_own_log(path)
        connection = _configured(apsw.Connection(str(path.absolute()), flags=flags), busy_seconds)
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("PRAGMA secure_delete = ON")
    return connection


def open_reader(path: Path, *, busy_seconds: float = BUSY_SECONDS, any_format: bool = False) -> apsw.Connection:
    """A connection that cannot write, to a store of the current format, or of any earlier one, the empty file included.

    If the folder is read-only and no other process left a log, the file is opened as one that cannot change. What a
    killed writer left half done is undone first, where the folder allows it.
    Raises StoreNotFound, NotAStore, StoreTooNew, StoreBusy, StoreReadOnly and StoreError.
    """
    check_path(path, create=False)
    with translating(path):
        check_own_log(path)
        try:
            return _open_reader(path, busy_seconds, any_format=any_format)
        except apsw.ReadOnlyError:  # a rollback journal that only one who may write can roll back
            writer = _configured(apsw.Connection(str(path.absolute()), flags=apsw.SQLITE_OPEN_READWRITE), busy_seconds)
            try:
                writer.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            finally:
                writer.close()
            return _open_reader(path, busy_seconds, any_format=any_format)


def _open_reader(path: Path, busy_seconds: float, *, any_format: bool) -> apsw.Connection:
    name, flags = str(path.absolute()), apsw.SQLITE_OPEN_READONLY
    if not os.access(path.absolute().parent, os.W_OK) and not beside(path, "-wal").exists():
        flags |= apsw.SQLITE_OPEN_URI
        name = f"file:{quote(path.absolute().as_posix())}?immutable=1"
    connection = _configured(apsw.Connection(name, flags=flags), busy_seconds)
    found = known_format(connection, path)
    if found < FORMAT and not any_format:
        raise StoreError(
            f"The store {path} is of format {found}, and this version reads format {FORMAT}: open it once for "
            "writing, for instance with `ecphory repair`, to bring it up to date; a copy is kept of it as it is."
        )
    connection.execute(VOCABULARIES)
    return connection


def start_logging(connection: apsw.Connection, busy_seconds: float) -> None:
    """Write through a write-ahead log from now on, so that readers and the writer do not wait for each other.

    Raises apsw.BusyError if others read the file without a log for longer than ``busy_seconds``.
    """
    connection.set_busy_timeout(int(busy_seconds * 1000))
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # Only from its first reading on does the connection hold the log; until then another process that closes the
        # store would end it, and this one would write without.
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    finally:
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))


def stop_logging(connection: apsw.Connection) -> None:
    """Move the log into the file and make it one that opens without a log, unless other connections use it or the disk
    is full: the log then stays, with all that was committed, for the next opening."""
    connection.set_busy_timeout(0)
    with suppress(apsw.BusyError, apsw.LockedError, apsw.FullError):
        # A connection that has not read since the log was begun does not know it, and would leave its files behind.
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        connection.execute("PRAGMA journal_mode = DELETE")


def beside(path: Path, suffix: str) -> Path:
    """The file beside the store whose name has this at its end."""
    return path.parent / (path.name + suffix)


def _configured(connection: apsw.Connection, busy_seconds: float) -> apsw.Connection:
    guard(connection).set_busy_timeout(int(busy_seconds * 1000))
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def check_path(path: Path, *, create: bool) -> None:
    """Raise if there cannot be a store at this path, or none is there and none may be made."""
    try:
        os.fspath(path).encode("utf-8")
        with suppress(FileNotFoundError, NotADirectoryError):
            beside(path, "-journal").stat()  # the longest name that SQLite will need
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise StoreError(f"{str(path)!a} cannot be the path of a store: {why}; name another path.") from error
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe would be waited for, a device has no end
        raise NotAStore(f"{path} is a pipe, a socket or a device; a store is a file: name another path.")
    for suffix in COMPANIONS:
        if not is_plain(beside(path, suffix)):
            raise StoreError(
                f"{beside(path, suffix)} is no file, and the store's own log would have this name: remove it, or name "
                "another path."
            )
    if path.is_dir():
        raise NotAStore(f"{path} is a folder; a store is a file: name a file in it, such as {path / 'memory.ecphory'}.")
    if not path.exists():
        if not create:
            raise StoreNotFound(f"There is no store at {path}; check the path, or add documents to make one there.")
        if not path.absolute().parent.is_dir():
            raise StoreError(f"The folder {path.absolute().parent} does not exist; make it, or name another path.")
    elif path.stat().st_size == 0 and not create:
        raise NotAStore(f"{path} is an empty file, not a store; remove it, or name another path.")


def is_plain(path: Path) -> bool:
    """Whether SQLite can open what is there without waiting: a file, a link (which it does not follow), or nothing."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def format_of(connection: apsw.Connection, path: Path) -> int:
    """The store's format; 0 for a file that is still empty."""
    application = connection.execute("PRAGMA application_id").get
    found: int = connection.execute("PRAGMA user_version").get
    if application != APPLICATION_ID:
        if application == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").get == 0:
            return 0
        raise NotAStore(f"{path} is an SQLite database of another application, not a store; name another path.")
    if found > FORMAT:
        raise StoreTooNew(
            f"The store {path} is of format {found}, and this version knows formats up to {FORMAT}: install a newer "
            "ecphoryrag, or index the documents into a new store."
        )
    if found < 1:
        raise StoreDamaged(f"The store {path} says that it is of format {found}, which there never was.")
    return found


def known_format(connection: apsw.Connection, path: Path) -> int:
    """As :func:`format_of`, of a file that holds the tables of its format and nothing else."""
    with transaction(connection, "DEFERRED"):  # another process may be migrating it just now
        found = format_of(connection, path)
        if found:
            check_schema(connection, path, found)
    return found


class ReaderPool:
    """Reading connections, each used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._standing = Standing(path)
        self._lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[apsw.Connection]:
        """A connection inside one read transaction."""
        with self._lock:
            if self._closed:
                raise StoreError(f"The store {self._path} has been closed; open it again.")
            self._standing.check()
            connection = self._idle.pop() if self._idle else None
        if connection is not None and _left_half_done(connection):
            _let_go(connection)
            connection = None
        if connection is None:
            connection = open_reader(self._path)
        try:
            with transaction(connection, "DEFERRED"):
                yield connection
        finally:
            with self._lock:
                keep = not self._closed and len(self._idle) < IDLE_READERS
                if keep:
                    self._idle.append(connection)
            if not keep:
                self._let_go(connection)

    def close(self) -> None:
        """Close what is idle now, and what is in use once it is given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            self._let_go(connection)

    def _let_go(self, connection: apsw.Connection) -> None:
        if not self._standing.holds():
            leave_log(connection)
        _let_go(connection)


def _left_half_done(connection: apsw.Connection) -> bool:
    """Whether a writer that was killed, or failed, has left what must be undone first: what only reads cannot do it."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.ReadOnlyError:
        return True
    return False


def _let_go(connection: apsw.Connection) -> None:
    """Close what only reads: nothing can be lost by it, so a disk that fails just now is no failure of the reading."""
    with suppress(apsw.Error):
        connection.close()
