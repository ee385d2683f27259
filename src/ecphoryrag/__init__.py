"""Associative memory for documents and agents. The public names load when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ecphoryrag.errors import EcphoryError
    from ecphoryrag.memory import Memory
    from ecphoryrag.settings import Settings, load_settings
    from ecphoryrag.types import AddReport, Answer, Document, Entity, Evidence, Recall

_HOMES = {
    "AddReport": "types",
    "Answer": "types",
    "Document": "types",
    "EcphoryError": "errors",
    "Entity": "types",
    "Evidence": "types",
    "Memory": "memory",
    "Recall": "types",
    "Settings": "settings",
    "load_settings": "settings",
}

__all__ = [
    "AddReport",
    "Answer",
    "Document",
    "EcphoryError",
    "Entity",
    "Evidence",
    "Memory",
    "Recall",
    "Settings",
    "__version__",
    "load_settings",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - costs 10 ms that most imports do not need

        return version("ecphoryrag")
    if name in _HOMES:
        return getattr(import_module(f"ecphoryrag.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'ecphoryrag' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
