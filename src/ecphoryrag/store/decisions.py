"""Decisions about names as rows: recorded, undone, and forgotten with the documents that they name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import apsw

from ecphoryrag.decisions import Decision, DecisionKind, Spot
from ecphoryrag.errors import EntityNotFound, InputError, StoreDamaged
from ecphoryrag.store import sql
from ecphoryrag.store.filters import Filter
from ecphoryrag.store.rows import FIELDS
from ecphoryrag.text.qualified import is_split_key
from ecphoryrag.types import JsonValue

KINDS = ("merge", "split")
LEAST_MERGED = 2

_INSERT = "INSERT INTO decisions (kind, target, qualifier, filter, reason, undone) VALUES (?, ?, ?, ?, ?, ?)"
_SELECT = "SELECT number, kind, target, qualifier, filter, reason, undone FROM decisions ORDER BY number"
_PLACES = """
SELECT document, key, field, start, before, after FROM decided_places WHERE decision = ? ORDER BY number
"""
_LEFT = """
DELETE FROM decisions WHERE number IN (SELECT value FROM json_each(?)) AND kind = 'split' AND filter IS NULL
AND NOT EXISTS (SELECT 1 FROM decided_places WHERE decision = decisions.number)
"""


def check_decision(decision: Decision) -> None:
    """Raise InputError for one that says nothing, contradicts itself, or holds what is no text."""
    if decision.kind not in KINDS:
        raise InputError(f"there is no decision of the kind {decision.kind!a}")
    if not all(decision.keys) or list(decision.keys) != sorted(set(decision.keys)):
        raise InputError("the names of a decision are sorted, each once, and none empty")
    if decision.kind == "merge":
        if len(decision.keys) < LEAST_MERGED:
            raise InputError("these are spellings of one name already, with nothing to merge")
        if decision.documents or decision.spots or decision.where is not None or decision.qualifier:
            raise InputError("a merge is of names, and selects no mentions")
        if decision.into is not None and decision.into not in decision.keys:
            raise InputError("the name to show is one of the names merged")
    else:
        if not decision.keys or not decision.into or not decision.qualifier or decision.into in decision.keys:
            raise InputError("a split needs a name, and a qualifier that tells the new entity from it")
        if not is_split_key(decision.into, decision.qualifier):
            raise InputError("the key of the new entity ends with its qualifier in brackets")
        if not decision.documents and not decision.spots and decision.where is None:
            raise InputError("a split needs a selection: documents, a filter, chunks or mentions")
        if decision.where is not None and not decision.where:
            raise InputError("the filter of a split is empty, and so would take every mention")
        if decision.where is not None:
            Filter(decision.where)
    _check_text(decision)


def _check_text(decision: Decision) -> None:
    try:
        json.dumps(decision.record(), ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError("a decision holds half of a surrogate pair, which is no character") from error


def record_all(connection: apsw.Connection, decisions: Iterable[Decision]) -> list[Decision]:
    """Write those of these checked decisions that are not there; the caller holds the transaction.

    One that comes twice is there twice: a history may say the same again after it was undone.
    """
    there = Counter(one.content for one in read_decisions(connection))
    written: list[Decision] = []
    for one in decisions:
        there[one.content] -= 1
        if there[one.content] < 0:
            written.append(_write(connection, one))
    return written


def record_decision(connection: apsw.Connection, decision: Decision) -> Decision:
    """Write a checked decision, unless the same one is in force; the caller holds the transaction."""
    for known in read_decisions(connection):
        if known.content == decision.content:
            return known
    return _write(connection, decision)


def _write(connection: apsw.Connection, decision: Decision) -> Decision:
    where = None if decision.where is None else _json(decision.where)
    values = (decision.kind, decision.into, decision.qualifier, where, decision.reason, int(decision.undone))
    connection.execute(_INSERT, values)
    number = connection.last_insert_rowid()
    connection.executemany("INSERT INTO decided_keys VALUES (?, ?)", [(number, key) for key in decision.keys])
    places: list[tuple[int | str | None, ...]] = [(id_, None, None, None, None, None) for id_ in decision.documents]
    places += [(s.document, s.key, FIELDS.index(s.field), s.start, s.before, s.after) for s in decision.spots]
    connection.executemany(
        "INSERT INTO decided_places VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(number, at, *place) for at, place in enumerate(places)],
    )
    return replace(decision, number=number)


def undo_decision(connection: apsw.Connection, number: int) -> Decision:
    """Mark it as undone; the caller holds the transaction. Raises EntityNotFound if there is none to undo."""
    found = next((one for one in read_decisions(connection) if one.number == number), None)
    if found is None or found.undone:
        what = "was undone before" if found else "is not known"
        raise EntityNotFound(f"The decision {number} {what}; `ecphory entities --decisions` lists those in force.")
    connection.execute("UPDATE decisions SET undone = 1 WHERE number = ?", (number,))
    return replace(found, undone=True)


def forget_documents(connection: apsw.Connection, ids: Collection[str]) -> None:
    """Forget what decisions say of these documents, and splits that select nothing else; the caller has the lock.

    Undone decisions are forgotten in the same way: of a forgotten document the history says nothing either.
    """
    query = "SELECT DISTINCT decision FROM decided_places WHERE document = ?"
    touched = {number for id_ in ids for (number,) in list(sql.rows(connection, query, (id_,)))}
    if not touched:
        return
    connection.executemany("DELETE FROM decided_places WHERE document = ?", [(id_,) for id_ in ids])
    connection.execute(_LEFT, (json.dumps(sorted(touched)),))
    for number in sorted(touched):  # numbered in order, as if the document had never been named
        order = "SELECT number FROM decided_places WHERE decision = ? ORDER BY number"
        for at, (place,) in enumerate(list(sql.rows(connection, order, (number,)))):
            connection.execute(
                "UPDATE decided_places SET number = ? WHERE decision = ? AND number = ?", (at, number, place)
            )


def in_force(decisions: Iterable[Decision]) -> list[Decision]:
    """Those that were not undone."""
    return [one for one in decisions if not one.undone]


def read_decisions(connection: apsw.Connection) -> list[Decision]:
    """All of them, also those undone, in the order in which they were made. Raises StoreDamaged."""
    try:
        return [_decision(connection, row) for row in list(sql.rows(connection, _SELECT))]
    except (ValueError, TypeError, IndexError) as error:
        raise StoreDamaged(
            f"The store is damaged: a decision about names cannot be read ({error}); run `ecphory repair`, which "
            "removes what cannot be read, or restore a copy."
        ) from error


def _decision(connection: apsw.Connection, row: sql.Row) -> Decision:
    number, kind, target, qualifier, filter_, reason, undone = row
    keys = sql.rows(connection, "SELECT key FROM decided_keys WHERE decision = ? ORDER BY key", (number,))
    documents: list[str] = []
    spots: list[Spot] = []
    for document, key, field, start, before, after in sql.rows(connection, _PLACES, (number,)):
        if key is None:
            documents.append(document)
        else:
            spots.append(Spot(document, key, FIELDS[field], start, before, after))
    where = None if filter_ is None else json.loads(filter_)
    if where is not None and not isinstance(where, dict):
        raise ValueError("a filter is no JSON object")
    return Decision(
        cast(DecisionKind, kind),
        tuple(sorted(key for (key,) in keys)),
        target,
        qualifier,
        tuple(documents),
        where,
        tuple(spots),
        reason,
        bool(undone),
        number,
    )


def decision_faults(connection: apsw.Connection) -> Iterator[tuple[int, str]]:
    """(number, what is wrong) of each decision that cannot be followed."""
    for row in list(sql.rows(connection, _SELECT)):
        try:
            check_decision(_decision(connection, row))
        except (InputError, ValueError, TypeError, IndexError) as error:
            yield row[0], str(error)


def remove_faulty(connection: apsw.Connection) -> None:
    """Remove the decisions that cannot be followed, and parts of none; the caller holds the transaction."""
    for table in ("decided_keys", "decided_places"):
        connection.execute(f"DELETE FROM {table} WHERE decision NOT IN (SELECT number FROM decisions)")  # noqa: S608
    for number, _ in list(decision_faults(connection)):
        for table, column in (("decided_keys", "decision"), ("decided_places", "decision"), ("decisions", "number")):
            connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))  # noqa: S608 - constants


def _json(value: Mapping[str, JsonValue]) -> str:
    found: Any = dict(value)
    return json.dumps(found, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
