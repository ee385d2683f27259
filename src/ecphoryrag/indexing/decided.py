"""A decision about names, as a line of an export holds it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ecphoryrag.decisions import Decision, DecisionKind, Spot
from ecphoryrag.errors import InputError
from ecphoryrag.ports import DECISION
from ecphoryrag.types import Field as MentionField

_Name = Annotated[str, Field(min_length=1)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    kind: DecisionKind
    keys: list[_Name] = Field(min_length=1)
    into: str | None
    qualifier: str
    documents: list[str]
    where: dict[str, Any] | None
    spots: list[list[Any]]
    reason: str
    undone: bool


class _Spot(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    document: str
    key: _Name
    field: MentionField
    start: int = Field(ge=0)
    before: str
    after: str


def decision_of(line: dict[str, Any]) -> Decision:
    """The decision of a parsed line. Raises InputError, saying what is wrong with it."""
    try:
        record = _Record.model_validate(line.get(DECISION))
        spots = tuple(_spot(parts) for parts in record.spots)
    except (ValidationError, ValueError) as error:
        raise InputError(f"the decision cannot be taken: {str(error).splitlines()[0]}") from error
    return Decision(
        record.kind,
        tuple(record.keys),
        record.into,
        record.qualifier,
        tuple(record.documents),
        record.where,
        spots,
        record.reason,
        record.undone,
    )


def _spot(parts: list[Any]) -> Spot:
    found = _Spot.model_validate(dict(zip(_Spot.model_fields, parts, strict=True)))
    return Spot(found.document, found.key, found.field, found.start, found.before, found.after)
