"""When a model has failed too often in a row to be asked again at once."""

from __future__ import annotations

from ecphoryrag.errors import CircuitOpen


class Breaker:
    """Opens after so many failures in a row, and after so many seconds lets one trial through.

    ``who`` is any object that stands for one call. Not safe for several threads by itself.
    """

    def __init__(self, failures: int, seconds: float) -> None:
        self._failures = failures
        self._seconds = seconds
        self._row = 0
        self._last = ""
        self._open_until: float | None = None
        self._trial: object | None = None

    def begin(self, who: object, now: float) -> None:
        """Let a call begin, as the trial if one is due. Raises CircuitOpen."""
        if self._open_until is not None and now >= self._open_until and self._trial is None:
            self._trial = who
        self.check(who, now)

    def check(self, who: object, now: float) -> None:
        """Raises CircuitOpen for a call that has begun and may not go on, unless it is the trial."""
        if self._open_until is None or self._trial is who:
            return
        left = self._open_until - now
        when = f"not for another {left:.0f} s" if left > 0 else "not before the call that tries it has ended"
        raise CircuitOpen(
            f"the model failed {self._row} calls in a row and is asked no more, {when}; the last failure: "
            f"{self._last} See that the server works, then do this again: what was done is kept"
        )

    def succeeded(self) -> None:
        """A call was answered: the server works."""
        self._row = 0
        self._open_until = self._trial = None

    def failed(self, who: object, now: float, reason: str) -> None:
        """A call was given up."""
        self._row += 1
        self._last = reason if reason.endswith(".") else f"{reason}."
        if self._trial is who or (self._open_until is None and self._row >= self._failures):
            self._open_until, self._trial = now + self._seconds, None

    def ended(self, who: object) -> None:
        """A call has ended, however it did; if it was the trial and told nothing of the server, the next is."""
        if self._trial is who:
            self._trial = None
