"""The ledger's file: its tables, how it is opened, and how one that cannot be used is put aside."""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import apsw

from ecphoryrag.errors import NotAStore, StoreDamaged, StoreTooNew
from ecphoryrag.store import sql
from ecphoryrag.store.connections import (
    BUSY_SECONDS,
    COMPANIONS,
    beside,
    is_plain,
    start_logging,
    stop_logging,
    transaction,
)
from ecphoryrag.store.copying import make_as_private, put_new, unfinished
from ecphoryrag.store.guarded import guard
from ecphoryrag.store.standing import Standing, leave_log

APPLICATION_ID = 0x4563704C
"""``EcpL``: by this the file says that it is a ledger of this package."""
FORMAT = 1
ASIDE = "-aside-"
"""What is added to the name, with a number, of a file that cannot be used."""
SALT_BYTES = 32

TABLES = """
CREATE TABLE properties (
    name TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE replies (
    row INTEGER PRIMARY KEY,    -- in the order of keeping
    key TEXT NOT NULL UNIQUE,
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    text BLOB NOT NULL,         -- UTF-8, lone surrogates let through
    finish_reason TEXT NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    embedding_tokens INTEGER NOT NULL,
    seconds REAL NOT NULL,
    estimated INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    checksum BLOB NOT NULL      -- BLAKE2b-64 of the rest
) STRICT;
CREATE INDEX replies_by_model ON replies (model, purpose);
CREATE TABLE sources (
    reply INTEGER NOT NULL REFERENCES replies ON DELETE CASCADE,
    document BLOB NOT NULL,     -- BLAKE2b-128 of its id, keyed by the salt
    PRIMARY KEY (reply, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX sources_by_document ON sources (document);
CREATE TABLE vectors (
    key TEXT PRIMARY KEY,
    lasting INTEGER NOT NULL,
    vector BLOB NOT NULL,       -- little-endian float32
    checksum BLOB NOT NULL      -- BLAKE2b-64 of key and vector
) STRICT;
CREATE INDEX passing_vectors ON vectors (key) WHERE NOT lasting;
CREATE TABLE spending (
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    embedding_tokens INTEGER NOT NULL,
    seconds REAL NOT NULL,
    estimated INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    PRIMARY KEY (purpose, model)
) STRICT, WITHOUT ROWID;
"""


@dataclass(slots=True)
class LedgerFile:
    """An open ledger. Not safe for several threads by itself."""

    path: Path
    connection: apsw.Connection
    salt: bytes
    writable: bool
    standing: Standing
    _logging: bool = False

    def log(self) -> None:
        """Write through a write-ahead log from now on; at the next call, if others are reading without one just now."""
        if not self._logging:
            with suppress(apsw.BusyError):
                start_logging(self.connection, 0)
                self._logging = True

    def document(self, id: str) -> bytes:
        """What stands for the document in the file; without the file's salt nobody can tell whether an id is in it."""
        return hashlib.blake2b(id.encode("utf-8", "surrogatepass"), key=self.salt, digest_size=16).digest()

    def note_traces(self) -> None:
        """In the transaction that deletes what must not be readable: remember that it still is."""
        self.connection.execute("INSERT OR REPLACE INTO properties VALUES ('traces', 1)")

    def remove_traces(self) -> None:
        """Leave nothing of what was deleted in any byte of the file and its log, if that was not done yet.

        ``secure_delete`` zeroes what it frees, but not the copies that are left in the gaps of a page when SQLite moves
        rows between pages; writing the whole file anew does. Raises apsw.BusyError if others use the file for too long.
        """
        if sql.value(self.connection, "SELECT 1 FROM properties WHERE name = 'traces'"):
            self.connection.execute("VACUUM")
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self.connection.execute("DELETE FROM properties WHERE name = 'traces'")

    def close(self) -> None:
        """Release the file, as one that opens without a log if no other connection uses it."""
        with suppress(apsw.Error):  # all that was kept is in the file or its log already
            if not self.standing.holds():
                leave_log(self.connection)
            elif self._logging:
                stop_logging(self.connection)
        with suppress(apsw.Error):
            self.connection.close()


def open_file(path: Path, *, writable: bool, create: bool, store: Path | None = None) -> LedgerFile | None:
    """The ledger at this path, made if need be and if ``create``, for those who may read the ``store``; None if there
    is none.

    If it cannot be written, it is opened for reading. Raises NotAStore for a file of something else or with something
    else as its log, StoreDamaged, StoreTooNew, and apsw.Error.
    """
    exists = path.exists()
    if not exists and not create:
        return None
    odd = [one for one in (path, *(beside(path, suffix) for suffix in COMPANIONS)) if not is_plain(one)]
    if exists and not path.is_file():
        raise apsw.CantOpenError(f"{path} is no file")  # whose it is and what is in it is not for us to say
    if odd:
        raise NotAStore(f"{odd[0]} is no file")
    writable = writable and os.access(path.absolute().parent, os.W_OK) and (not exists or os.access(path, os.W_OK))
    if not exists and not writable:
        return None
    if not exists and store is not None:
        _make(path, store)
    connection = _connected(path, writable=writable)
    try:
        _configure(connection)
        file = LedgerFile(path, connection, b"", writable, Standing(path))
        with transaction(
            connection, "DEFERRED"
        ):  # one that another process makes just now is there whole or not at all
            new = _is_new(connection, path)
        if new:
            if not (create and writable):
                connection.close()
                return None
            file.log()
            _create(connection, path)
        file.salt = _salt(connection, path)
        if writable:
            with suppress(apsw.BusyError, apsw.LockedError, apsw.FullError):
                file.remove_traces()  # of a process that was killed in forgetting
    except apsw.SQLError as error:  # the statements are sound, so the file is not
        connection.close()
        raise StoreDamaged(f"{path}: {error}") from error
    except BaseException:
        connection.close()
        raise
    return file


def put_aside(path: Path) -> Path:
    """Give the file, and what belongs to it, another name, and return it. Raises OSError."""
    for number in itertools.count(1):
        target = beside(path, f"{ASIDE}{number}")
        with suppress(FileExistsError):
            target.touch(exist_ok=False)  # so that two processes never choose the same name
            break
    for suffix in COMPANIONS:  # first, for a log that is left behind would be taken for that of the next ledger
        with suppress(FileNotFoundError):
            beside(path, suffix).replace(beside(target, suffix))
    try:
        path.replace(target)
    except OSError:
        target.unlink()
        raise
    return target


def _make(path: Path, store: Path) -> None:
    """Make the file, empty; under another name first, for closing it would let go of the locks that another connection
    of this process has taken on it by then."""
    temporary = unfinished(path)
    try:
        if store.is_file():
            make_as_private(temporary, store)
            try:
                with suppress(FileExistsError):  # another process, or thread, has made it just now
                    put_new(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise apsw.CantOpenError(f"{path}: {error.strerror}") from error


def _connected(path: Path, *, writable: bool) -> apsw.Connection:
    name = str(path.absolute())
    if writable:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    else:
        flags = apsw.SQLITE_OPEN_READONLY
        if not os.access(path.absolute().parent, os.W_OK) and not beside(path, "-wal").exists():
            flags |= apsw.SQLITE_OPEN_URI
            name = f"file:{quote(path.absolute().as_posix())}?immutable=1"
    return guard(apsw.Connection(name, flags=flags))


def _configure(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    for pragma in ("foreign_keys = ON", "temp_store = MEMORY", "secure_delete = ON", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {pragma}")


def _is_new(connection: apsw.Connection, path: Path) -> bool:
    """Whether nothing is in the file yet. Raises NotAStore, StoreTooNew, StoreDamaged."""
    application = sql.value(connection, "PRAGMA application_id")
    found = sql.value(connection, "PRAGMA user_version")
    if application != APPLICATION_ID:
        if application == 0 and not _schema(connection):
            return True
        raise NotAStore(f"{path} is an SQLite database of another application")
    if found > FORMAT:
        raise StoreTooNew(
            f"The ledger {path} is of format {found}, and this version knows formats up to {FORMAT}: replies are "
            "neither found in it nor kept. Install a newer ecphoryrag, or remove it to begin another."
        )
    expected = apsw.Connection(":memory:")
    expected.execute(TABLES)
    if found != FORMAT or _schema(connection) != _schema(expected):
        raise StoreDamaged(f"{path} lacks tables of a ledger")
    return False


def _schema(connection: apsw.Connection) -> list[sql.Row]:
    return list(sql.rows(connection, "SELECT type, name, sql FROM sqlite_schema ORDER BY name"))


def _create(connection: apsw.Connection, path: Path) -> None:
    with transaction(connection, "IMMEDIATE"):
        if _is_new(connection, path):  # still, now that nobody else can write
            connection.execute(TABLES)
            connection.execute("INSERT INTO properties VALUES ('salt', ?)", (secrets.token_bytes(SALT_BYTES),))
            connection.execute(f"PRAGMA user_version = {FORMAT:d}")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")


def _salt(connection: apsw.Connection, path: Path) -> bytes:
    salt = sql.value(connection, "SELECT value FROM properties WHERE name = 'salt'")
    if not isinstance(salt, bytes) or len(salt) != SALT_BYTES:
        raise StoreDamaged(f"{path} lacks its salt")
    return salt
