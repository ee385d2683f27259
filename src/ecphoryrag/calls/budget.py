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
        self._settled = threading.Condition()
        self._job = 0
        self._limit: int | None = None
        self._spent = 0
        self._reserved = 0

    @contextmanager
    def limited_to(self, tokens: int | None) -> Iterator[None]:
        """Inside, no more than so many tokens are spent; None: no limit. One job at a time has a limit.

        Calls that began before do not count, whenever they end.
        """
        self._begin(tokens)
        try:
            yield
        finally:
            self._begin(None)

    def _begin(self, limit: int | None) -> None:
        with self._settled:
            self._job += 1
            self._limit, self._spent, self._reserved = limit, 0, 0
            self._settled.notify_all()

    @contextmanager
    def reserved(self, tokens: int) -> Iterator[Spent]:
        """Room for a call that costs at most so many tokens; tell ``spent`` what it did cost.

        If there would be room but for what calls under way have reserved, waits until they have settled, for most
        cost less: a job of many threads then ends no sooner than one of a single thread. Not to be nested.
        A call that is left by an exception before it told has cost nothing. Raises BudgetSpent if there is no room.
        """
        with self._settled:
            while self._limit is not None and self._spent + self._reserved + tokens > self._limit:
                if self._spent + tokens > self._limit:
                    raise BudgetSpent(
                        f"the next call may take {tokens} tokens, and {max(0, self._limit - self._spent)} of the "
                        f"{self._limit} allowed are left: allow more with --max-tokens, and add again to go on from "
                        "here"
                    )
                self._settled.wait()
            self._reserved += tokens
            job = self._job
        spent = Spent()
        try:
            yield spent
        finally:
            with self._settled:
                if job == self._job:
                    self._reserved -= tokens
                    self._spent += spent.tokens
                self._settled.notify_all()


class Spent:
    """What a call cost, to be told by the one who made it."""

    def __init__(self) -> None:
        self.tokens = 0
