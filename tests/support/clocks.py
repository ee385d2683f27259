"""Clocks for tests of what waits: one that jumps, and one that runs fast."""

from __future__ import annotations

import threading
import time


class JumpingClock:
    """For one thread: a wait takes no time and moves the clock. Remembers how long was waited each time."""

    def __init__(self, now: float = 1000.0) -> None:
        self.time = now
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        del condition
        assert seconds is not None, "nobody else is there to end this wait"
        assert seconds > 0
        self.time += seconds
        self.waits.append(seconds)


class FastClock:
    """For several threads: real waits, so many times faster."""

    def __init__(self, times: float) -> None:
        self._times = times

    def now(self) -> float:
        return time.monotonic() * self._times

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        condition.wait(None if seconds is None else seconds / self._times)
