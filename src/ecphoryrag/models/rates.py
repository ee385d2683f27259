"""How much goes to a server in any minute."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

MINUTE = 60.0
"""Seconds that what was sent counts for."""


@dataclass(slots=True, eq=False)
class Taken:
    """Room that a call has taken: when, and how much."""

    at: float
    amount: int


class Rate:
    """At most ``limit`` in any minute, whenever the minute begins. Times are seconds of one clock that never goes back.

    A call that needs more than the limit goes alone: when nothing else counts any more, and before anything else does.
    Not safe for several threads by itself.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken: deque[Taken] = deque()
        self._sum = 0

    def delay(self, now: float, amount: int) -> float:
        """Seconds until so much has room if nothing is given back; 0 if it has room now."""
        while self._taken and self._taken[0].at + MINUTE <= now:
            self._sum -= self._taken.popleft().amount
        missing = self._sum + min(amount, self._limit) - self._limit
        for one in self._taken:
            if missing <= 0:
                break
            missing -= one.amount
            if missing <= 0:
                return one.at + MINUTE - now
        return 0.0

    def take(self, now: float, amount: int) -> Taken:
        """Take the room that :meth:`delay` has found."""
        taken = Taken(now, amount)
        self._taken.append(taken)
        self._sum += amount
        return taken

    def settle(self, taken: Taken, amount: int) -> None:
        """Count this much in place of what was taken; of no effect once its minute is over."""
        if self._taken and taken.at >= self._taken[0].at:
            self._sum += amount - taken.amount
        taken.amount = amount
