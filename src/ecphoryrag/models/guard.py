"""Calls of a server: so many at once, so many a minute, tried again if that may help, and stopped if it does not."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from ecphoryrag.errors import (
    GenerationError,
    JobStopped,
    ModelNotAvailable,
    PromptCut,
    PromptTooLong,
    Transient,
)
from ecphoryrag.models.breaker import Breaker
from ecphoryrag.models.delegating import GeneratorAround
from ecphoryrag.models.rates import Rate, Taken
from ecphoryrag.ports import Generator, JsonSchema
from ecphoryrag.settings.models import ServerSettings
from ecphoryrag.types import Generation, Message

T = TypeVar("T")

FIRST_WAIT = 1.0
"""Seconds: the wait after a first failure is drawn from 0 to this, after each further one from twice as much. Five
tries are then spread over 7.5 s on average, and four calls that fail together do not come back together."""


class Clock(Protocol):
    """The clock that waits are measured by."""

    def now(self) -> float:
        """Seconds; never goes back."""
        ...

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        """Wait until the condition, which the caller holds, is notified, or so many seconds have passed."""
        ...


class MonotonicClock:
    """The time of this machine."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    def wait(self, condition: threading.Condition, seconds: float | None) -> None:
        """Wait for real; Ctrl-C ends it."""
        condition.wait(seconds)


class _Call:
    """One call from its first try to its last; also what it holds while a try is under way."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.tries = 0
        self.taken: list[tuple[Rate, Taken]] = []


class Guard:
    """Stands before one model of a server; its methods may be called from several threads.

    Only what may pass is tried again: Transient, and ModelNotAvailable of a server that has answered before (it is
    being restarted). A call waits for its turn, for the limits and between two tries without holding a place among
    the ``concurrency`` calls under way. Where a server asks to wait, all calls wait, since it asks the client.

    The circuit opens after ``failures`` calls in a row that were given up. A refusal (any other GenerationError, or
    PromptCut) counts as one until the server has first answered, for then it is set up wrongly; later it is about the
    one request, and shows that the server works. PromptTooLong, ModelNotAvailable at the first call and JobStopped
    say nothing of how the server does, and count neither way.
    """

    def __init__(self, settings: ServerSettings, *, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or MonotonicClock()
        self._changed = threading.Condition()
        """Guards all that follows, and is notified when some of it has changed that others wait for."""
        self._queue: deque[_Call] = deque()
        self._under_way: set[_Call] = set()
        self._requests = None if settings.rpm is None else Rate(settings.rpm)
        self._tokens = None if settings.tpm is None else Rate(settings.tpm)
        self._breaker = Breaker(settings.failures, settings.longest_wait)
        self._not_before = float("-inf")
        self._answered = False
        self._stopped = False
        self._retried = 0

    @property
    def counts_tokens(self) -> bool:
        """Whether the ``tokens`` of a call are looked at; where not, they need not be counted."""
        return self._tokens is not None

    @property
    def retried(self) -> int:
        """Tries that failed and were followed by another, so far."""
        return self._retried

    def call(self, tokens: int, send: Callable[[], T], spent: Callable[[T], int]) -> T:
        """The result of ``send``, which may take up to so many tokens; ``spent`` reads from it how many it took.

        Raises GenerationError when all tries are used up, the last failure chained; CircuitOpen while the circuit is
        open, JobStopped after :meth:`stop`; and at once whatever ``send`` raises that is not tried again.
        """
        call = _Call(tokens)
        return self._patiently(call, lambda: self._try(call, send, spent), answers=True)

    def patiently(self, do: Callable[[], T]) -> T:
        """The result of ``do``, which may have to ask the server for something small: tried again as a call is, and
        outside of its limits. Raises as :meth:`call` does."""
        return self._patiently(_Call(0), do, answers=False)

    def _patiently(self, call: _Call, do: Callable[[], T], *, answers: bool) -> T:
        """``answers``: whether success shows that the server works."""
        retrying = Retrying(
            retry=retry_if_exception(self._may_pass),
            stop=stop_after_attempt(self._settings.tries),
            wait=self._backoff,
            sleep=lambda seconds: self._pause(call, seconds),
            reraise=True,
        )
        try:
            with self._changed:
                self._check_stopped()
                self._breaker.begin(call, self._clock.now())
            result: T = retrying(self._counted, call, do)
        except (Transient, ModelNotAvailable) as error:
            if not self._may_pass(error):
                raise
            self._note(failed=(call, str(error)))
            times = "once" if call.tries == 1 else f"{call.tries} times"
            raise GenerationError(
                f"the model was asked {times} and failed each time, the last time so: {error}. See that the server "
                "works and is not overloaded, then do this again"
            ) from error
        except (GenerationError, PromptCut) as error:
            self._note(failed=None if self._answered else (call, str(error)))
            raise
        else:
            if answers:
                self._note(failed=None)
            return result
        finally:
            with self._changed:
                self._breaker.ended(call)

    def _counted(self, call: _Call, do: Callable[[], T]) -> T:
        with self._changed:
            self._retried += call.tries > 0
            call.tries += 1
        return do()

    def stop(self) -> None:
        """End all waiting, with JobStopped in the threads that wait, and let no call begin until :meth:`resume`.

        Calls under way are left to end, since they are paid for.
        """
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def resume(self) -> None:
        """Let calls begin again."""
        with self._changed:
            self._stopped = False

    def _may_pass(self, error: BaseException) -> bool:
        return isinstance(error, Transient) or (self._answered and isinstance(error, ModelNotAvailable))

    def _try(self, call: _Call, send: Callable[[], T], spent: Callable[[T], int]) -> T:
        """One try, inside all limits."""
        try:
            self._enter(call)
            reply = send()
        except Transient as error:
            self._heed(error)
            raise
        except (PromptTooLong, ModelNotAvailable):
            self._settle(call, requests=0, tokens=0)  # it has not come to a request
            raise
        else:
            self._settle(call, requests=1, tokens=spent(reply))
            return reply
        finally:
            with self._changed:
                self._under_way.discard(call)
                self._changed.notify_all()

    def _enter(self, call: _Call) -> None:
        """Wait in line until the call may be sent, and take its place."""
        with self._changed:
            self._queue.append(call)
            try:
                while (delay := self._delay(call)) != 0:
                    self._clock.wait(self._changed, delay)
                self._under_way.add(call)
                now = self._clock.now()
                rates = ((self._requests, 1), (self._tokens, call.tokens))
                call.taken = [(rate, rate.take(now, amount)) for rate, amount in rates if rate is not None]
            finally:
                self._queue.remove(call)
                self._changed.notify_all()

    def _delay(self, call: _Call) -> float | None:
        """Seconds until the call may go if nothing changes, None if something must; raises if it may not go at all."""
        self._check(call)
        if self._queue[0] is not call or len(self._under_way) >= self._settings.concurrency:
            return None
        now = self._clock.now()
        requests = self._requests.delay(now, 1) if self._requests else 0.0
        tokens = self._tokens.delay(now, call.tokens) if self._tokens else 0.0
        return max(0.0, self._not_before - now, requests, tokens)

    def _settle(self, call: _Call, *, requests: int, tokens: int) -> None:
        """Count what a try did take. One that failed is left at what it might have taken: nobody knows better."""
        with self._changed:
            for rate, taken in call.taken:
                rate.settle(taken, tokens if rate is self._tokens else requests)

    def _heed(self, error: Transient) -> None:
        """Let nobody call before the server wants to be called."""
        with self._changed:
            self._not_before = max(self._not_before, self._clock.now() + self._asked(error))

    def _asked(self, error: BaseException | None) -> float:
        """Seconds that the server asks to wait, as far as we do."""
        asked = getattr(error, "retry_after", None) or 0.0
        return min(asked, self._settings.longest_wait) if asked > 0 else 0.0

    def _backoff(self, state: RetryCallState) -> float:
        """Seconds before the next try: what the server asks for, and a random time ("full jitter") that grows."""
        longest = self._settings.longest_wait
        drawn = wait_random_exponential(multiplier=FIRST_WAIT, max=longest)(state)
        asked = self._asked(state.outcome.exception()) if state.outcome else 0.0
        return min(longest, asked + drawn)

    def _pause(self, call: _Call, seconds: float) -> None:
        """Wait between two tries."""
        with self._changed:
            until = self._clock.now() + seconds
            while (left := until - self._clock.now()) > 0:
                self._check(call)
                self._clock.wait(self._changed, left)

    def _check(self, call: _Call) -> None:
        self._check_stopped()
        self._breaker.check(call, self._clock.now())

    def _check_stopped(self) -> None:
        if self._stopped:
            raise JobStopped("the work was stopped before this call was made; do it again to go on from here")

    def _note(self, *, failed: tuple[_Call, str] | None) -> None:
        """Tell the breaker how a call ended, and those who wait."""
        with self._changed:
            if failed is None:
                self._answered = True
                self._breaker.succeeded()
            else:
                self._breaker.failed(failed[0], self._clock.now(), failed[1])
            self._changed.notify_all()


class GuardedGenerator(GeneratorAround):
    """A generator whose calls go through a guard. See :class:`ecphoryrag.ports.Generator`."""

    def __init__(self, inner: Generator, guard: Guard) -> None:
        super().__init__(inner)
        self._guard = guard

    @property
    def guard(self) -> Guard:
        """What its calls go through."""
        return self._guard

    def count_tokens(self, messages: Sequence[Message], schema: JsonSchema | None = None) -> int:
        """As the model counts. Outside of the limits, for it asks for no generation; some servers are asked, though."""
        return self._guard.patiently(lambda: self._inner.count_tokens(messages, schema))

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        """A reply of the model, once it can be had; raises what it does, and what :meth:`Guard.call` does."""
        tokens = self.count_tokens(messages, schema) + max_tokens if self._guard.counts_tokens else 0
        return self._guard.call(tokens, lambda: self._inner.generate(messages, schema, max_tokens), _spent)

    def close(self) -> None:
        """Let no more calls begin, and release the model."""
        self._guard.stop()
        self._inner.close()


def _spent(reply: Generation) -> int:
    return reply.usage.input_tokens + reply.usage.output_tokens
