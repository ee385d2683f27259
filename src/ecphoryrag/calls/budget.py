"""A limit on the tokens that one job may spend."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ecphoryrag.errors import BudgetSpent


class Budget:
    """Tokens that the calls of a job may spend together; without a limit until :meth:`limited_to` sets one.

    A call reserves what it may cost before it is made and settles what it did cost afterwards, so that calls made at
    once from several threads do not exceed the limit together.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limit: int | None = None
        self._taken = 0

    @contextmanager
    def limited_to(self, tokens: int | None) -> Iterator[None]:
        """Inside, no more than so many tokens are spent; None: no limit. One job at a time has a limit."""
        with self._lock:
            self._limit, self._taken = tokens, 0
        try:
            yield
        finally:
            with self._lock:
                self._limit = None

    @contextmanager
    def reserved(self, tokens: int) -> Iterator[Spent]:
        """Room for a call that costs at most so many tokens; tell ``spent`` what it did cost.

        A call that is left by an exception before it told has cost nothing. Raises BudgetSpent if there is no room.
        """
        with self._lock:
            if self._limit is not None and self._taken + tokens > self._limit:
                raise BudgetSpent(
                    f"the next call may take {tokens} tokens, and {max(0, self._limit - self._taken)} of the "
                    f"{self._limit} allowed are left: allow more with --max-tokens, and add again to go on from here"
                )
            self._taken += tokens
        spent = Spent()
        try:
            yield spent
        finally:
            with self._lock:
                self._taken += spent.tokens - tokens


class Spent:
    """What a call cost, to be told by the one who made it."""

    def __init__(self) -> None:
        self.tokens = 0
