"""The command ``ecphory``: it parses, calls Memory, and renders. Documented in ``docs/cli.md``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from io import StringIO, TextIOWrapper
from typing import Any, NoReturn

__all__ = ["main", "run"]


def run(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line, by default the process's own, and return its exit code."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # before a command has begun, or after it has told its result
        sys.stderr.write("Interrupted.\n")
        return 130


def _run(arguments: Sequence[str] | None) -> int:
    from typer import Abort  # noqa: PLC0415 - as below

    from ecphoryrag.cli.app import app  # noqa: PLC0415 - nothing is imported before a command is run
    from ecphoryrag.cli.unseen import visible  # noqa: PLC0415

    try:
        ended = app(args=None if arguments is None else list(arguments), prog_name="ecphory", standalone_mode=False)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    except Abort:  # how the parser tells of Ctrl-C
        raise KeyboardInterrupt from None
    except usage_error() as error:
        return tell_usage(error)
    except OSError as error:
        # One that names a file is not of the output; either way the reason is better than a traceback.
        what = f"cannot use {error.filename}" if error.filename else "cannot write the output"
        sys.stderr.write(visible(f"Error: {what}: {error.strerror or error}.\n"))
        discard_output()
        return 1
    return ended if isinstance(ended, int) else 0


def usage_error() -> type[Exception]:
    """What the parser raises for a wrong command line: it is public only as the base of one of its kinds."""
    import typer  # noqa: PLC0415 - as above

    base: type[Exception] = typer.BadParameter.__mro__[2]
    return base


def tell_usage(error: Any) -> int:
    """Say what is wrong with the command line, and return the exit code; a name on it may be that of a hostile file."""
    from ecphoryrag.cli.unseen import visible  # noqa: PLC0415 - as above

    said = StringIO()
    error.show(file=said)
    sys.stderr.write(visible(said.getvalue()))
    code: int = error.exit_code
    return code


def discard_output() -> None:
    """Let what standard output still holds, or is yet given, go nowhere, so that Python ends without an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def main() -> NoReturn:
    """The entry point of the script: carry out the command line and end the process."""
    # A standard stream that was closed before the start is None, and its number would go to the next file opened.
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - open as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - the same
    for stream in (sys.stdout, sys.stderr):
        # Where the terminal's encoding lacks a character it is written out, rather than the command failing.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = run()
    # All is told by now: whoever presses Ctrl-C once more wants the end, and no traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)
