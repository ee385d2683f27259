"""The command ``ecphory``: it parses, calls Memory, and renders. Documented in ``docs/cli.md``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import NoReturn

__all__ = ["main", "run"]


def run(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command line, by default the process's own, and return its exit code."""
    from ecphoryrag.cli.app import app  # noqa: PLC0415 - nothing is imported before a command is run

    try:
        app(args=None if arguments is None else list(arguments), prog_name="ecphory")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def main() -> NoReturn:
    """The entry point of the script: carry out the command line and end the process."""
    for stream in (sys.stdout, sys.stderr):
        # Where the terminal's encoding lacks a character it is written out, rather than the command failing.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run())
