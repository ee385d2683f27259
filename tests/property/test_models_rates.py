"""How much goes in a minute, against counting it all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ecphoryrag.models.rates import MINUTE, Rate

STEPS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 15), st.integers(0, 15)),
    max_size=40,
)
"""Seconds since the last call, what it takes, what it took after all."""


def fits(taken: list[tuple[float, int]], limit: int, at: float, amount: int) -> bool:
    counted = sum(size for when, size in taken if when + MINUTE > at)
    return counted + amount <= limit or counted == 0


@given(STEPS, st.integers(1, 12))
def test_a_call_goes_as_soon_as_it_fits_and_no_sooner(steps: list[tuple[int, int, int]], limit: int) -> None:
    rate, taken, now = Rate(limit), list[tuple[float, int]](), 0.0
    for gap, amount, spent in steps:
        now += gap
        moments = sorted({now, *(when + MINUTE for when, _ in taken if when + MINUTE > now)})
        earliest = next(at for at in moments if fits(taken, limit, at, amount))
        delay = rate.delay(now, amount)
        assert delay == earliest - now
        now += delay
        assert rate.delay(now, amount) == 0
        entry = rate.take(now, amount)
        rate.settle(entry, spent)
        taken.append((now, spent))


@given(STEPS, st.integers(1, 12))
def test_no_minute_has_more_than_the_limit(steps: list[tuple[int, int, int]], limit: int) -> None:
    rate, taken, now = Rate(limit), list[tuple[float, int]](), 0.0
    for gap, amount, _ in steps:
        now += gap
        now += rate.delay(now, amount)
        rate.take(now, amount)
        taken.append((now, amount))
    for start, _ in taken:
        minute = [amount for when, amount in taken if start <= when < start + MINUTE and amount]
        assert sum(minute) <= limit or len(minute) == 1


def test_what_is_settled_after_its_minute_changes_nothing() -> None:
    rate = Rate(10)
    old = rate.take(0.0, 4)
    assert rate.delay(70.0, 1) == 0
    rate.take(70.0, 9)
    rate.settle(old, 400)
    assert rate.delay(70.0, 1) == 0
    assert rate.delay(70.0, 2) == MINUTE
