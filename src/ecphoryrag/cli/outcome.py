"""How the result of a command is told: as JSON, or drawn for people."""

from __future__ import annotations

import sys
from collections.abc import Callable

from ecphoryrag.cli.jsonout import write_json
from ecphoryrag.cli.screen import Screen, standard_output
from ecphoryrag.cli.session import Session


def tell_result(session: Session, value: object, draw: Callable[[Screen], None]) -> None:
    """The value as JSON if that is asked for, or else what ``draw`` makes of it, on standard output."""
    if session.json:
        write_json(value)
    else:
        draw(standard_output())
    # A closed pipe must be met here, where it is expected, and not when Python ends.
    sys.stdout.flush()
