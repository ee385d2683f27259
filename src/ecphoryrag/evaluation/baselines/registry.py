"""The methods by name. Each module is imported only when its method is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from ecphoryrag.errors import SettingsError
from ecphoryrag.evaluation.baselines.port import Kit, Method

PACKAGE = "ecphoryrag.evaluation.baselines"


@dataclass(frozen=True, slots=True)
class Entry:
    """How a method is made."""

    module: str
    """Of this package; its ``make(kit)`` makes it, or ``make_named(name, kit)`` where several share it."""
    asked_only: frozenset[str] | None = frozenset()
    """Parameters that change the answers and not the index, so that cells that differ in them alone share one. None:
    all but the extractor's name."""
    retrieves: bool = True
    """False: it brings back no documents, so that it has no figures of retrieval."""
    warm: bool = False
    """Whether its first question loads what later ones find loaded, so that one is asked before the clock runs."""


METHODS: Mapping[str, Entry] = {
    "closed-book": Entry("closed_book", retrieves=False),
    "bm25": Entry("memory", None, warm=True),
    "dense": Entry("memory", None, warm=True),
    "hybrid": Entry("memory", None, warm=True),
    "paper": Entry("memory", None, warm=True),
    "ecphory": Entry("memory", None, warm=True),
    "hipporag2": Entry("hipporag2", frozenset({"filter", "facts", "phrases", "passage_weight", "damping"})),
    "lightrag": Entry(
        "lightrag",
        frozenset({"mode", "top", "threshold", "chunks", "entity_tokens", "relation_tokens", "text_tokens", "context"}),
    ),
    "react": Entry("react", frozenset({"rounds", "passages"})),
    "think-on-graph": Entry("think_on_graph", frozenset({"width", "depth"})),
}


def entry(name: str) -> Entry:
    """Raises SettingsError for a method that is not known."""
    if name not in METHODS:
        raise SettingsError(f"no method is called {name!r}; the methods are {', '.join(METHODS)}")
    return METHODS[name]


def index_parameters(name: str, parameters: Mapping[str, object]) -> dict[str, object]:
    """Those of the parameters that determine the index. Raises SettingsError for a method that is not known."""
    asked_only = entry(name).asked_only
    if asked_only is None:
        return {key: value for key, value in parameters.items() if key == "extractor"}
    return {key: value for key, value in parameters.items() if key not in asked_only}


def make(name: str, kit: Kit) -> Method:
    """The method, made of the kit. Raises SettingsError for a method that is not known or not there, or a parameter
    that it does not have, and ModelNotAvailable if it needs a model that the kit lacks."""
    module = f"{PACKAGE}.{entry(name).module}"
    if find_spec(module) is None:
        raise SettingsError(f"the method {name} is not part of this version: the module {module} is missing")
    made = import_module(module)
    own = getattr(made, "make", None)  # a module that only imports the other one has its own
    method: Method = own(kit) if own is not None else made.make_named(name, kit)
    return method
