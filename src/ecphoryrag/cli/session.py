"""What a command works in: its options, the settings in force, the store, and what becomes of its errors."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ecphoryrag.cli import discard_output
from ecphoryrag.cli.codes import ExitCode
from ecphoryrag.errors import EcphoryError, StoreNotFound

if TYPE_CHECKING:
    from ecphoryrag.memory import Memory
    from ecphoryrag.settings import Settings
    from ecphoryrag.types import JsonValue


@dataclass(frozen=True, slots=True)
class Session:
    """The options that every command has, given before or after its name."""

    store: Path | None = None
    config: Path | None = None
    json: bool = False
    encoder: str | None = None
    stdin_format: str | None = None

    @classmethod
    def of(
        cls,
        context: typer.Context,
        store: Path | None = None,
        config: Path | None = None,
        json: bool = False,  # noqa: FBT001 - a flag of the command line
        encoder: str | None = None,
        stdin_format: str | None = None,
    ) -> Session:
        """The options of a command; those it was not given are the ones given before its name."""
        before = context.obj if isinstance(context.obj, Session) else cls()
        named = encoder or before.encoder
        return cls(store or before.store, config or before.config, json or before.json, named, stdin_format)

    def arguments(self) -> dict[str, Any]:
        """The options as a tree of settings."""
        tree: dict[str, Any] = {"store": self.store, "encoder": self.encoder}
        if self.stdin_format is not None:
            tree["indexing"] = {"stdin_format": self.stdin_format}
        return {name: value for name, value in tree.items() if value is not None}

    def settings(self) -> Settings:
        """The settings in force. Raises SettingsError."""
        from ecphoryrag.settings import load_settings  # noqa: PLC0415 - a slow import

        return load_settings(self.arguments(), self.config)

    def writing(self, *, create: bool) -> Memory:
        """The store, to be written to; made if it is not there and ``create`` says so."""
        from ecphoryrag.memory import Memory  # noqa: PLC0415 - a slow import

        settings = self.settings()
        return self._noticed(Memory.open(settings.store, settings=settings, create=create))

    def moving(self) -> Memory:
        """The store, to be moved to another encoder: its present one, which the settings may no longer name and whose
        server may be gone, is not made. Raises StoreNotFound."""
        from ecphoryrag.memory import Memory  # noqa: PLC0415 - a slow import
        from ecphoryrag.models.unasked import UnaskedEncoder  # noqa: PLC0415 - of this command alone
        from ecphoryrag.store import kept_encoder  # noqa: PLC0415 - a slow import

        settings = self.settings()
        kept = kept_encoder(settings.store)
        present = None if kept is None else UnaskedEncoder(kept)
        return self._noticed(Memory.open(settings.store, settings=settings, create=False, encoder=present))

    def _noticed(self, memory: Memory) -> Memory:
        """The memory; what its opening did that the user should know is told on standard error."""
        for notice in memory.notices:
            self.tell_notice(notice)
        return memory

    @contextmanager
    def estimating(self) -> Iterator[Memory]:
        """The store, to be read only; an empty one, gone afterwards, if it is not there yet."""
        import tempfile  # noqa: PLC0415 - of this command alone

        from ecphoryrag.memory import Memory  # noqa: PLC0415 - a slow import
        from ecphoryrag.models.unasked import unasked_encoder  # noqa: PLC0415 - of this command alone

        settings = self.settings()
        if settings.store.exists():
            with self.reading() as memory:
                yield memory
            return
        with (
            tempfile.TemporaryDirectory(prefix="ecphory-estimate-") as folder,
            Memory.open(Path(folder) / "empty", settings=settings, encoder=unasked_encoder(settings)) as memory,
        ):
            yield memory

    def reading(self) -> Memory:
        """The store, to be read only. Raises StoreNotFound."""
        from ecphoryrag.memory import Memory  # noqa: PLC0415 - a slow import

        settings = self.settings()
        return Memory.open(settings.store, settings=settings, create=False, read_only=True)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Expected errors become a line on standard error and an exit code, never a traceback."""
        try:
            yield
        except EcphoryError as error:
            if isinstance(error, StoreNotFound):
                error.add_note("`ecphory add PATH...` makes one; --store names another.")
            self.tell_error(error)
            raise typer.Exit(ExitCode.ERROR) from error
        except KeyboardInterrupt as error:
            sys.stderr.write("Interrupted.\n")
            raise typer.Exit(ExitCode.INTERRUPTED) from error
        except BrokenPipeError as error:
            # The reader has seen enough (`| head`). What is still buffered must not be flushed into the closed pipe.
            discard_output()
            raise typer.Exit(ExitCode.OK) from error

    def tell_notice(self, notice: str) -> None:
        """What was done in passing, as a line or as JSON, on standard error."""
        from ecphoryrag.cli.screen import visible  # noqa: PLC0415 - only where something is shown

        said = json_format.dumps({"notice": notice}) if self.json else f"Note: {visible(notice)}"
        sys.stderr.write(f"{said}\n")

    def tell_error(self, error: EcphoryError) -> None:
        """The error with its notes, as a line or as JSON, on standard error."""
        from ecphoryrag.cli.screen import visible  # noqa: PLC0415 - only where something is shown

        notes = getattr(error, "__notes__", [])
        if self.json:
            said = {"error": {"type": type(error).__name__, "message": str(error), "notes": notes}}
            sys.stderr.write(json_format.dumps(said) + "\n")
        else:
            sys.stderr.write("".join(f"{line}\n" for line in (f"Error: {visible(str(error))}", *notes)))


def parse_where(filters: Sequence[str] | None) -> dict[str, JsonValue] | None:
    """``key=value`` pairs as a filter: values as JSON where they parse, a repeated key as a list of alternatives.

    Raises typer.BadParameter for what has no ``=`` or no key.
    """
    from ecphoryrag.indexing.records import json_or_text  # noqa: PLC0415 - only where a filter is given

    found: dict[str, list[JsonValue]] = {}
    for pair in filters or ():
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="'--where'")
        read = json_or_text(value)
        found.setdefault(key.strip(), []).extend(read if isinstance(read, list) else [read])
    return {key: values[0] if len(values) == 1 else list(values) for key, values in found.items()} or None
