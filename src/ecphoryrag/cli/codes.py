"""What the exit code of a command says."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Documented in ``docs/cli.md``; a script may rely on them."""

    OK = 0
    ERROR = 1
    """It could not be done; the reason is on standard error."""
    USAGE = 2
    """The command line itself is wrong."""
    SOME_FAILED = 3
    """Done, but some documents could not be taken in; each has its line."""
    NO_ANSWER = 4
    """The evidence is there but no answer; the reason is given."""
    STOPPED = 5
    """`add`: stopped before its end, as the budget was spent or the model failed too often; what was done is kept."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C; what was committed is kept."""
