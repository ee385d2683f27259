"""What is asked of recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from ecphoryrag.errors import InputError, quoted
from ecphoryrag.ports import CueFinder, RelationLabeller, Where
from ecphoryrag.settings.recall import MethodName, RecallSettings


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """How a question is to be recalled: ``k`` chunks by ``method``, of documents whose metadata pass ``where``."""

    settings: RecallSettings
    method: MethodName
    k: int
    where: Where | None = None

    @classmethod
    def of(
        cls,
        settings: RecallSettings,
        *,
        k: int | None = None,
        method: str | None = None,
        where: Where | None = None,
    ) -> RecallRequest:
        """What is not given comes from the settings; for `paper`, ``k`` is its ``context_chunks``.

        Raises InputError for a method that is not known and for a ``k`` below 1.
        """
        name = _method(settings.method if method is None else method)
        if k is None:
            k = settings.paper.context_chunks if name == "paper" else settings.k
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise InputError(f"k is {quoted(k)}: give the number of chunks wanted, 1 or more")
        return cls(settings, name, k, where)


@dataclass(frozen=True, slots=True)
class Helpers:
    """What a language model may do for the method `ecphory`, where the settings ask for it (``recall.llm``)."""

    cue_finder: CueFinder | None = None
    labeller: RelationLabeller | None = None


def _method(name: str) -> MethodName:
    for known in get_args(MethodName):
        if name == known:
            method: MethodName = known
            return method
    raise InputError(f"no recall method is called {quoted(name)}: choose one of {', '.join(get_args(MethodName))}")
