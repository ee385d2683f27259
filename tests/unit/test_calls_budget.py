"""A limit on what the calls of a job spend together."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from ecphoryrag.calls.budget import Budget
from ecphoryrag.errors import BudgetSpent, JobStopped


def spend(budget: Budget, reserve: int, cost: int) -> None:
    with budget.reserved(reserve) as spent:
        spent.tokens = cost


def spend_and_fail(budget: Budget, reserve: int, cost: int) -> None:
    with budget.reserved(reserve) as spent:
        spent.tokens = cost
        raise ValueError("failed")


def test_without_a_limit_anything_is_allowed() -> None:
    budget = Budget()
    spend(budget, 10**9, 10**9)
    with budget.limited_to(None):
        spend(budget, 10**9, 10**9)
    with budget.limited_to(0), pytest.raises(BudgetSpent):
        spend(budget, 1, 0)


def test_what_may_be_spent_is_spent_to_the_last_token() -> None:
    budget = Budget()
    with budget.limited_to(100):
        spend(budget, 60, 60)
        spend(budget, 40, 40)
        spend(budget, 0, 0)
        with pytest.raises(BudgetSpent, match=r"may take 1 tokens, and 0 of the 100 allowed.*--max-tokens") as raised:
            spend(budget, 1, 1)
    assert isinstance(raised.value, JobStopped), "it would not end the job"
    spend(budget, 1000, 1000)


def test_what_was_reserved_and_not_spent_is_there_for_the_next() -> None:
    budget = Budget()
    with budget.limited_to(100):
        for _ in range(9):
            spend(budget, 20, 10)
        with pytest.raises(BudgetSpent, match="10 of the 100"):
            spend(budget, 20, 10)


def test_a_call_that_cost_more_than_it_reserved_is_counted_in_full() -> None:
    budget = Budget()
    with budget.limited_to(100):
        spend(budget, 10, 130)
        with pytest.raises(BudgetSpent, match="and 0 of the 100"):
            spend(budget, 1, 1)


def test_a_call_that_failed_costs_what_it_told() -> None:
    budget = Budget()
    with budget.limited_to(100):
        with pytest.raises(ValueError, match="failed"), budget.reserved(100):
            raise ValueError("failed")
        with pytest.raises(ValueError, match="failed"):
            spend_and_fail(budget, 100, 30)
        with pytest.raises(BudgetSpent, match="70 of the 100"):
            spend(budget, 71, 0)
        spend(budget, 70, 0)


def test_each_job_has_its_own_limit() -> None:
    budget = Budget()
    for _ in range(2):
        with budget.limited_to(100):
            spend(budget, 100, 100)
            with pytest.raises(BudgetSpent, match="0 of the 100"):
                spend(budget, 1, 0)


@pytest.mark.parametrize("before", [None, 500])
def test_a_call_of_an_earlier_job_neither_widens_nor_narrows_a_later_one(before: int | None) -> None:
    budget, earlier = Budget(), ExitStack()
    with budget.limited_to(before):
        old = earlier.enter_context(budget.reserved(90))
    with budget.limited_to(100):
        old.tokens = 5
        earlier.close()
        with pytest.raises(BudgetSpent):
            spend(budget, 101, 0)
        spend(budget, 100, 100)


@pytest.mark.parametrize("seed", range(5))
def test_threads_together_never_exceed_it(seed: int) -> None:
    """And they go on as long as a single thread would: a call is refused only if it could not be made alone."""
    limit, threads, budget, lock = 20_000, 16, Budget(), threading.Lock()
    spent_by_all, out_by_all, refused = 0, 0, list[int]()

    def work(number: int) -> None:
        nonlocal spent_by_all, out_by_all
        chance = random.Random(seed * 100 + number)
        while True:
            reserve = chance.randint(1, 900)
            cost = chance.randint(0, reserve)
            try:
                with budget.reserved(reserve) as spent:
                    with lock:
                        out_by_all += reserve
                        assert spent_by_all + out_by_all <= limit
                    time.sleep(chance.random() * 0.0005)
                    spent.tokens = cost
                    with lock:
                        out_by_all -= reserve
                        spent_by_all += cost
            except BudgetSpent:
                refused.append(reserve)
                return

    with budget.limited_to(limit), ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(work, number) for number in range(threads)]:
            future.result(timeout=20)
    assert len(refused) == threads
    assert limit - 900 < spent_by_all <= limit
    assert all(spent_by_all + reserve > limit for reserve in refused)


def test_waiting_for_room_ends_with_the_job() -> None:
    budget, holding, done = Budget(), threading.Event(), threading.Event()

    def hold() -> None:
        with budget.reserved(100):
            holding.set()
            assert done.wait(5)

    with ThreadPoolExecutor(2) as pool:
        with budget.limited_to(100):
            first = pool.submit(hold)
            assert holding.wait(5)
            second = pool.submit(spend, budget, 50, 50)
            time.sleep(0.02)
            assert not second.done()
        second.result(timeout=5)
        done.set()
        first.result(timeout=5)
