"""Removing from the ledger what tells of erased documents, whichever call it came from."""

from __future__ import annotations

from collections.abc import Sequence

from ecphoryrag.store import sql
from ecphoryrag.store.connections import transaction
from ecphoryrag.store.ledger_file import LedgerFile
from ecphoryrag.store.raw_bytes import found_in, prepared


def scrub_file(file: LedgerFile, needles: Sequence[bytes]) -> int:
    """Remove the replies that hold any of these and all vectors that no store has yet, then write the file anew.

    Returns how many replies. Raises apsw.BusyError if others use the file for too long.
    """
    file.log()
    with transaction(file.connection, "IMMEDIATE"):
        by_start, table = prepared(needles)
        replies = sql.rows(file.connection, "SELECT row, text FROM replies") if needles else iter(())
        rows = [(row,) for row, text in list(replies) if found_in(text, by_start, table)]
        file.connection.executemany("DELETE FROM replies WHERE row = ?", rows)
        file.connection.execute("DELETE FROM vectors WHERE NOT lasting")
        file.note_traces()
    file.remove_traces()
    return len(rows)
