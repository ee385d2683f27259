"""What every command has in common, written once: the shared options, the session they make, and how it ends."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeAlias, get_type_hints

import typer

from ecphoryrag.cli import options
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.cli.session import Session

_P = ParamSpec("_P")
Command: TypeAlias = Callable[Concatenate[Session, _P], ExitCode]
"""A command as it is written: it takes the session and its own options, and gives its exit code."""
_SHARED: dict[str, tuple[Any, object]] = {
    "encoder": (options.Encoder, None),
    "store": (options.Store, None),
    "config": (options.Config, None),
    "json": (options.Json, False),
}
"""The shared options, in the order in which they are shown: type and default."""
ON_STORE = tuple(_SHARED)
ON_FILE = ("store", "config", "json")
"""Of a command that needs no encoder, or has an option of its own for it."""


def with_session(*shared: str) -> Callable[[Command[_P]], Callable[..., None]]:
    """Give a command these shared options after its own, in place of its first parameter.

    What typer then sees is a function with all of these options, which tells expected errors and ends with the exit
    code.
    """

    def decorated(command: Command[_P]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        _, *own = inspect.signature(command).parameters.values()
        parameters = [
            inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context),
            *(one.replace(annotation=hints[one.name]) for one in own),
        ]
        for name in shared:
            kind, default = _SHARED[name]
            parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default))

        @functools.wraps(command)
        def run(context: typer.Context, *arguments: _P.args, **words: _P.kwargs) -> None:
            given: dict[str, Any] = {name: words.pop(name) for name in shared}
            session = Session.of(context, **given)
            with session.reporting():
                raise typer.Exit(command(session, *arguments, **words))

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # what typer reads
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorated
