"""Calls of a server: retries, limits and the circuit, in a time of their own; threads and Ctrl-C for real."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from ecphoryrag.errors import (
    BudgetSpent,
    CircuitOpen,
    EcphoryError,
    GenerationError,
    JobStopped,
    ModelNotAvailable,
    PromptCut,
    PromptTooLong,
    Transient,
)
from ecphoryrag.models import guard as guarding
from ecphoryrag.models.fakes import ScriptedGenerator
from ecphoryrag.models.guard import Guard, GuardedGenerator
from ecphoryrag.models.rates import MINUTE, Rate, Taken
from ecphoryrag.ports import JsonSchema
from ecphoryrag.settings.models import OpenAISettings, ServerSettings
from ecphoryrag.types import Generation, Message, Usage
from tests.support.clocks import FastClock, JumpingClock

BUSY = Transient("503: busy")
GONE = ModelNotAvailable("nothing listens there")
REFUSED = GenerationError("400: no such parameter")
CUT = PromptCut("the server read 2048 tokens of 3000")
LONG = PromptTooLong("3000 tokens do not fit")


class Server:
    """Does one after another what it is told to; then answers. An answer takes 10 tokens."""

    def __init__(self, clock: JumpingClock, does: Iterable[EcphoryError | None] = ()) -> None:
        self._clock = clock
        self.does = list(does)
        self.asked: list[float] = []

    def __call__(self) -> int:
        self.asked.append(self._clock.time)
        what = self.does.pop(0) if self.does else None
        if what is not None:
            raise what
        return 10


@pytest.fixture
def clock() -> JumpingClock:
    """A clock that jumps."""
    return JumpingClock()


def guard_of(clock: guarding.Clock | None = None, **settings: object) -> Guard:
    return Guard(ServerSettings.model_validate(settings), clock=clock)


def ask(guard: Guard, server: Callable[[], int], tokens: int = 10) -> int:
    return guard.call(tokens, server, lambda reply: reply)


def fail(guard: Guard, clock: JumpingClock, *errors: EcphoryError) -> None:
    with pytest.raises(EcphoryError):
        ask(guard, Server(clock, errors))


def test_what_may_pass_is_tried_again(clock: JumpingClock) -> None:
    guard, server = guard_of(clock, tries=5), Server(clock, [BUSY] * 4)
    assert ask(guard, server) == 10
    assert (len(server.asked), guard.retried) == (5, 4)


def test_after_all_tries_it_says_how_often_and_why(clock: JumpingClock) -> None:
    guard, server = guard_of(clock, tries=3), Server(clock, [BUSY] * 9)
    with pytest.raises(GenerationError, match=r"asked 3 times .*503: busy") as raised:
        ask(guard, server)
    assert raised.value.__cause__ is BUSY
    assert not isinstance(raised.value, Transient), "it would be tried again by whoever asks"
    assert len(server.asked) == 3
    with pytest.raises(GenerationError, match="asked once"):
        ask(guard_of(clock, tries=1), server)


def test_waits_are_drawn_between_nothing_and_twice_as_much_each_time(clock: JumpingClock) -> None:
    for _ in range(200):
        fail(guard_of(clock, tries=5, longest_wait=5), clock, *[BUSY] * 5)
    for place, highest in enumerate((1, 2, 4, 5)):
        waits = clock.waits[place::4]
        assert max(waits) <= highest
        assert max(waits) > 0.9 * highest
        assert min(waits) < 0.1 * highest


@pytest.mark.parametrize(("asked", "least", "most"), [(7.0, 7, 8), (90.0, 60, 60), (0.0, 0, 1), (-5.0, 0, 1)])
def test_the_server_is_not_asked_before_it_wants_to_be(
    clock: JumpingClock, asked: float, least: float, most: float
) -> None:
    server = Server(clock, [Transient("429", retry_after=asked)])
    ask(guard_of(clock, longest_wait=60), server)
    assert least <= server.asked[1] - server.asked[0] <= most


def test_others_do_not_ask_it_either(clock: JumpingClock) -> None:
    guard, server = guard_of(clock, tries=1), Server(clock, [Transient("429", retry_after=20)])
    with pytest.raises(GenerationError):
        ask(guard, server)
    ask(guard, server)
    assert server.asked[1] - server.asked[0] == 20


@pytest.mark.parametrize("error", [GONE, REFUSED, CUT, LONG, BudgetSpent("spent")])
def test_what_will_not_pass_is_raised_at_once(clock: JumpingClock, error: EcphoryError) -> None:
    server = Server(clock, [error])
    with pytest.raises(type(error)) as raised:
        ask(guard_of(clock), server)
    assert raised.value is error
    assert len(server.asked) == 1


def test_a_server_that_has_answered_may_be_gone_for_a_while(clock: JumpingClock) -> None:
    guard = guard_of(clock, tries=3)
    ask(guard, Server(clock))
    assert ask(guard, Server(clock, [GONE, GONE])) == 10
    with pytest.raises(GenerationError, match="nothing listens there"):
        ask(guard, Server(clock, [GONE] * 3))


def test_the_circuit_opens_after_failures_in_a_row(clock: JumpingClock) -> None:
    guard, server = guard_of(clock, tries=2, failures=3, longest_wait=30), Server(clock)
    for _ in range(2):
        fail(guard, clock, BUSY, BUSY)
    ask(guard, server)
    for _ in range(3):
        fail(guard, clock, BUSY, BUSY)
    waited, server.asked = len(clock.waits), []
    with pytest.raises(CircuitOpen, match=r"failed 3 calls in a row .*another 30 s.*503: busy"):
        ask(guard, server)
    clock.time += 29.9
    with pytest.raises(CircuitOpen):
        ask(guard, server)
    assert server.asked == []
    assert len(clock.waits) == waited, "it waited to say no"


def test_after_a_while_one_call_tries_whether_it_works_again(clock: JumpingClock) -> None:
    guard = guard_of(clock, tries=1, failures=1, longest_wait=30)
    fail(guard, clock, BUSY)
    clock.time += 30

    def meanwhile() -> int:
        with pytest.raises(CircuitOpen, match="before the call that tries it has ended"):
            ask(guard, Server(clock))
        raise BUSY

    with pytest.raises(GenerationError):
        ask(guard, meanwhile)
    with pytest.raises(CircuitOpen, match="another 30 s"):
        ask(guard, Server(clock))
    clock.time += 30
    assert ask(guard, Server(clock)) == 10
    assert ask(guard, Server(clock)) == 10


@pytest.mark.parametrize("error", [LONG, GONE, BudgetSpent("spent")])
def test_what_says_nothing_of_the_server_neither_opens_nor_closes(clock: JumpingClock, error: EcphoryError) -> None:
    guard = guard_of(clock, tries=1, failures=2)
    for _ in range(5):
        fail(guard, clock, error)
    fail(guard, clock, BUSY)
    fail(guard, clock, error)
    fail(guard, clock, BUSY)
    with pytest.raises(CircuitOpen):
        ask(guard, Server(clock))
    clock.time += 60
    fail(guard, clock, error)
    assert ask(guard, Server(clock)) == 10, "the trial said nothing, so the next call is it"


@pytest.mark.parametrize("error", [REFUSED, CUT])
def test_refusals_count_until_the_server_has_answered(clock: JumpingClock, error: EcphoryError) -> None:
    guard = guard_of(clock, failures=2)
    fail(guard, clock, error)
    fail(guard, clock, error)
    with pytest.raises(CircuitOpen, match=str(error)):
        ask(guard, Server(clock))
    clock.time += 60
    ask(guard, Server(clock))
    for _ in range(5):
        fail(guard, clock, error)
    assert ask(guard, Server(clock)) == 10


def test_requests_a_minute(clock: JumpingClock) -> None:
    guard, server = guard_of(clock, rpm=3), Server(clock)
    start = clock.time
    for _ in range(7):
        ask(guard, server)
    assert [at - start for at in server.asked] == [0, 0, 0, 60, 60, 60, 120]


def test_every_try_is_a_request(clock: JumpingClock) -> None:
    guard, server = guard_of(clock, rpm=2, tries=3, longest_wait=0), Server(clock, [BUSY, BUSY])
    ask(guard, server)
    assert server.asked[2] - server.asked[0] == 60


def test_a_prompt_that_was_not_sent_is_no_request(clock: JumpingClock) -> None:
    guard, server = guard_of(clock, rpm=1, tpm=20), Server(clock)
    fail(guard, clock, LONG)
    ask(guard, server)
    assert clock.waits == []


def test_tokens_a_minute_are_those_that_were_spent(clock: JumpingClock) -> None:
    guard, server = guard_of(clock, tpm=100), Server(clock)
    start = clock.time
    for _ in range(8):
        ask(guard, server, tokens=30)  # of which it takes 10: seven have room with 30 more reserved
    ask(guard, server, tokens=30)
    assert [at - start for at in server.asked] == [0] * 8 + [60]


def test_a_call_of_more_than_the_limit_goes_alone(clock: JumpingClock) -> None:
    guard = guard_of(clock, tpm=100)
    asked = []

    def large() -> int:
        asked.append(clock.time)
        return 500

    start = clock.time
    ask(guard, Server(clock), tokens=10)
    ask(guard, large, tokens=500)
    server = Server(clock)
    ask(guard, server, tokens=10)
    assert [at - start for at in (*asked, *server.asked)] == [60, 120]


def test_a_failed_try_may_have_taken_all_its_tokens(clock: JumpingClock) -> None:
    guard, server = guard_of(clock, tpm=100, longest_wait=0), Server(clock, [BUSY])
    ask(guard, server, tokens=60)
    assert server.asked[1] - server.asked[0] == 60


def test_threads_together_keep_to_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute lasts 60 ms. What counts is written down where room is taken, so that no slow thread blurs it."""
    taken: list[float] = []

    class Recording(Rate):
        def take(self, now: float, amount: int) -> Taken:
            taken.append(now)
            return super().take(now, amount)

    monkeypatch.setattr(guarding, "Rate", Recording)
    guard = guard_of(FastClock(1000), rpm=20, concurrency=4)
    under_way, most, lock = 0, 0, threading.Lock()

    def send() -> int:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.001)
        with lock:
            under_way -= 1
        return 1

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: ask(guard, send), range(70)))
    assert most == 4
    assert len(taken) == 70
    assert all(later - earlier >= MINUTE for earlier, later in zip(taken, taken[20:], strict=False))


class Held:
    """Calls that stay under way until they are let go."""

    def __init__(self, guard: Guard, count: int, pool: ThreadPoolExecutor) -> None:
        self.go = threading.Event()
        self._begun = threading.Semaphore(0)
        self.futures = [pool.submit(ask, guard, self._send) for _ in range(count)]
        for _ in range(count):
            assert self._begun.acquire(timeout=5)

    def _send(self) -> int:
        self._begun.release()
        assert self.go.wait(5)
        return 10


def waiting(guard: Guard, pool: ThreadPoolExecutor, count: int) -> list[Future[int]]:
    """Calls that wait for their turn."""
    futures = [pool.submit(ask, guard, lambda: 10) for _ in range(count)]
    wait_for_line(guard, count)
    return futures


def wait_for_line(guard: Guard, count: int) -> None:
    until = time.monotonic() + 5
    while len(guard._queue) < count and time.monotonic() < until:
        time.sleep(0.001)
    assert len(guard._queue) == count


def pausing(guard: Guard, pool: ThreadPoolExecutor) -> Future[int]:
    """A call that waits between two tries."""
    failed = threading.Event()

    def send() -> int:
        failed.set()
        raise Transient("429", retry_after=50)

    future = pool.submit(ask, guard, send)
    assert failed.wait(5)
    return future


def test_stopping_ends_all_waiting_and_lets_what_is_under_way_end() -> None:
    guard = guard_of(concurrency=2)
    with ThreadPoolExecutor(8) as pool:
        sleeping = pausing(guard, pool)
        guard._not_before = float("-inf")
        held = Held(guard, 2, pool)
        queued = waiting(guard, pool, 3)
        began = time.monotonic()
        guard.stop()
        for future in (sleeping, *queued):
            with pytest.raises(JobStopped, match="stopped"):
                future.result(timeout=5)
        assert time.monotonic() - began < 1
        held.go.set()
        assert [future.result(timeout=5) for future in held.futures] == [10, 10]
        with pytest.raises(JobStopped):
            ask(guard, lambda: 10)
        guard.resume()
        assert ask(guard, lambda: 10) == 10


def test_an_opening_circuit_ends_all_waiting() -> None:
    guard = guard_of(concurrency=2, tries=2, failures=1, longest_wait=60)
    with ThreadPoolExecutor(8) as pool:
        sleeping = pausing(guard, pool)
        guard._not_before = float("-inf")
        held = Held(guard, 2, pool)
        queued = waiting(guard, pool, 3)
        guard._note(failed=(guarding._Call(0), "busy"))
        for future in (sleeping, *queued):
            with pytest.raises(CircuitOpen):
                future.result(timeout=5)
        held.go.set()
        assert [future.result(timeout=5) for future in held.futures] == [10, 10]
        assert ask(guard, lambda: 10) == 10, "a reply shows that it works"


def test_first_come_first_served() -> None:
    """A call that needs much room is not passed over for ever by those that need little."""
    order: list[int] = []
    guard = guard_of(concurrency=1)

    def send(number: int) -> Callable[[], int]:
        def sent() -> int:
            order.append(number)
            return 1

        return sent

    with ThreadPoolExecutor(12) as pool:
        held = Held(guard, 1, pool)
        for number in range(10):
            pool.submit(ask, guard, send(number))
            wait_for_line(guard, number + 1)
        held.go.set()
    assert order == list(range(10))


@pytest.mark.parametrize("where", ["between tries", "at the limit", "in line"])
def test_ctrl_c_ends_a_wait_at_once_and_leaves_no_place_taken(where: str) -> None:
    guard = guard_of(concurrency=1, rpm=1 if where == "at the limit" else None)
    main = threading.main_thread().ident
    assert main is not None
    with ThreadPoolExecutor(2) as pool:
        held = Held(guard, 1, pool) if where == "in line" else None
        before = waiting(guard, pool, 1) if held else []
        if where == "at the limit":
            ask(guard, lambda: 10)

        def send() -> int:
            raise Transient("429", retry_after=50)

        timer = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            ask(guard, send)
        assert time.monotonic() - began < 2
        timer.join()
        if held is not None:
            held.go.set()
        assert [future.result(timeout=5) for future in before] == [10] * len(before)
    assert not guard._under_way
    assert not guard._queue


def test_sixteen_at_once_are_twelve_times_as_fast_as_one() -> None:
    """200 ms a call, as measured: the serial rate is what the calls take one after another. The best of three."""
    calls, each = 64, 0.2

    def send() -> int:
        time.sleep(each)
        return 10

    def gain() -> float:
        guard = guard_of(concurrency=16, rpm=100_000, tpm=10_000_000)
        began = time.monotonic()
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda _: ask(guard, send, tokens=1000), range(calls)))
        return calls * each / (time.monotonic() - began)

    assert any(gain() >= 12 for _ in range(3))


class Flaky(ScriptedGenerator):
    """Fails at the first call of each prompt."""

    def __init__(self) -> None:
        super().__init__(lambda messages: messages[-1].content.upper())
        self.failed = 0

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        if self.failed == 0:
            self.failed += 1
            raise BUSY
        return super().generate(messages, schema, max_tokens)


def test_a_guarded_generator_is_the_generator(clock: JumpingClock) -> None:
    inner = Flaky()
    guard = Guard(OpenAISettings(tpm=100), clock=clock)
    generator = GuardedGenerator(inner, guard)
    assert generator.guard is guard
    assert (generator.name, generator.identity) == (inner.name, inner.identity)
    assert (generator.context_size, generator.counts_exactly) == (inner.context_size, inner.counts_exactly)
    messages = [Message("user", "say two words")]
    assert generator.count_tokens(messages) == 3
    reply = generator.generate(messages, None, 20)
    assert reply == Generation("SAY TWO WORDS", "stop", Usage(1, 3, 3))
    assert guard.retried == 1
    assert guard._tokens is not None
    assert guard._tokens.delay(clock.now(), 100 - 23 - 6) == 0, "a failed try at 23 and a reply at 6"
    assert guard._tokens.delay(clock.now(), 100 - 23 - 5) > 0
    generator.close()
    with pytest.raises(JobStopped):
        generator.generate(messages, None, 20)


def test_counting_waits_for_a_server_that_is_being_restarted(clock: JumpingClock) -> None:
    gone: list[EcphoryError] = []

    class Asking(ScriptedGenerator):
        def count_tokens(self, messages: Sequence[Message], schema: JsonSchema | None = None) -> int:
            if gone:
                raise gone.pop()
            return super().count_tokens(messages, schema)

    generator = GuardedGenerator(Asking(lambda _: "yes"), guard_of(clock, tries=3, failures=1, rpm=1))
    messages = [Message("user", "two words")]
    gone.append(GONE)
    with pytest.raises(ModelNotAvailable):
        generator.count_tokens(messages)
    generator.generate(messages, None, 5)
    gone.extend([GONE, GONE])
    start = clock.time
    assert generator.count_tokens(messages) == 2
    assert clock.time - start < MINUTE, "it is no request of the model"
    gone.extend([GONE] * 3)
    with pytest.raises(GenerationError, match="asked 3 times"):
        generator.count_tokens(messages)
    clock.time += 100
    assert generator.count_tokens(messages) == 2
    with pytest.raises(CircuitOpen):  # to count may take no server: it does not show that one works
        generator.guard._breaker.check(object(), clock.time)


def test_tokens_are_not_counted_where_nothing_limits_them(clock: JumpingClock) -> None:
    class Uncounted(ScriptedGenerator):
        def count_tokens(self, messages: object, schema: object = None) -> int:
            raise AssertionError("this may be a request of its own")

        def generate(self, messages: object, schema: object, max_tokens: int) -> Generation:
            return Generation("yes", "stop", Usage())

    generator = GuardedGenerator(Uncounted([]), guard_of(clock))
    assert generator.generate([Message("user", "?")], None, 5).text == "yes"
