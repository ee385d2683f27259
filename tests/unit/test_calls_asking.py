"""Asking until a reply can be used, with the ledger and the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ecphoryrag.calls.asking import Request, ask, request_key
from ecphoryrag.calls.budget import Budget
from ecphoryrag.calls.reading import Unusable
from ecphoryrag.errors import BudgetSpent, GenerationError, ModelNotAvailable, Rejected, Transient
from ecphoryrag.models.fakes import ScriptedGenerator
from ecphoryrag.ports import JsonSchema
from ecphoryrag.types import Generation, JsonValue, Message, Spending, Usage
from tests.support.memory_ledger import MemoryLedger

SCHEMA: JsonSchema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
MESSAGES = (Message("system", "Count."), Message("user", "How many are there?"))


def number(said: JsonValue) -> int:
    if not isinstance(said, dict) or not isinstance(said.get("n"), int):
        raise Unusable("the reply gives no number")
    value = said["n"]
    assert isinstance(value, int)
    return value


def keys(ledger: MemoryLedger) -> list[str]:
    return [key for key, _ in ledger.history("index", "scripted")]


REQUEST = Request("index", MESSAGES, SCHEMA, 20, number, documents=("d1",))


def test_a_good_reply_is_kept_and_the_next_time_costs_nothing() -> None:
    ledger, generator = MemoryLedger(), ScriptedGenerator(['{"n": 3}'])
    first = ask(REQUEST, generator, ledger=ledger)
    again = ask(REQUEST, generator, ledger=ledger)
    assert (first.value, again.value) == (3, 3)
    assert first.usage == Usage(1, 5, 2)
    assert again.usage == Usage(cached=1)
    assert len(generator.asked) == 1
    assert ledger.spending() == (Spending("index", "scripted", Usage(1, 5, 2)),)
    ledger.forget(["d1"])
    assert ledger.find(request_key(REQUEST, generator)) is None


def test_a_bad_reply_is_asked_for_again_with_the_reason_and_kept_under_the_first_key() -> None:
    ledger, generator = MemoryLedger(), ScriptedGenerator(['{"m": 3}', '{"n": 3}'])
    asked = ask(REQUEST, generator, ledger=ledger)
    assert (asked.value, asked.notes) == (3, ("asked again, since the reply gives no number",))
    *before, last = generator.asked[1]
    assert before == [MESSAGES[0]]
    assert last.content == (
        "How many are there?\nYour last reply was refused: the reply gives no number. Reply again, correctly."
    )
    assert asked.usage.calls == 2
    assert keys(ledger) == [request_key(REQUEST, generator)]
    assert ledger.spending() == (Spending("index", "scripted", asked.usage),)
    assert ask(REQUEST, ScriptedGenerator([]), ledger=ledger).value == 3


def test_a_correction_may_be_shown_in_another_way() -> None:
    generator = ScriptedGenerator(["", '{"n": 3}'])
    ask(replace(REQUEST, corrected=lambda reason: [Message("user", reason)]), generator)
    assert generator.asked[1] == (Message("user", "the reply is empty"),)


def test_after_all_attempts_it_is_rejected_with_what_they_cost() -> None:
    ledger, generator = MemoryLedger(), ScriptedGenerator(['{"n": 1', "", '{"n": "x"}', '{"n": 1}'])
    with pytest.raises(Rejected, match="the reply gives no number") as rejected:
        ask(replace(REQUEST, attempts=3), generator, ledger=ledger)
    assert rejected.value.usage.calls == 3
    assert rejected.value.notes == (
        "asked again, since the reply breaks off before its JSON ends",
        "asked again, since the reply is empty",
    )
    assert keys(ledger) == []
    assert ledger.spending()[0].usage == rejected.value.usage


def test_a_reply_cut_off_by_its_length_is_refused_however_whole_it_looks() -> None:
    with pytest.raises(Rejected, match="cut off"):
        ask(REQUEST, ScriptedGenerator(['{"n": 3}'] * 2, finish_reason="length"))


class BreaksLater(ScriptedGenerator):
    def __init__(self, replies: Sequence[str], error: Exception) -> None:
        super().__init__(replies)
        self._left, self._error = len(replies), error

    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        if not self._left:
            raise self._error
        self._left -= 1
        return super().generate(messages, schema, max_tokens)


@pytest.mark.parametrize("error", [Transient("busy"), GenerationError("broken"), ModelNotAvailable("gone")])
def test_an_error_of_the_model_bears_what_was_spent_before_it(error: GenerationError) -> None:
    with pytest.raises(type(error)) as raised:
        ask(
            REQUEST,
            BreaksLater(
                [
                    "",
                ],
                error,
            ),
        )
    assert raised.value.usage.calls == 1
    assert raised.value.notes == ("asked again, since the reply is empty",)
    with pytest.raises(type(error)) as raised:
        ask(REQUEST, BreaksLater([], error))
    assert raised.value.usage == Usage()


def unlikely(value: int) -> str | None:
    return None if value else "0 is not likely"


@pytest.mark.parametrize(
    ("replies", "value", "calls"),
    [
        (['{"n": 3}'], 3, 1),
        (['{"n": 0}', '{"n": 3}'], 3, 2),
        (['{"n": 0}', '{"n": 0}'], 0, 2),
        (['{"n": 0}', "broken"], 0, 2),
        (["broken", '{"n": 0}'], 0, 2),
    ],
)
def test_a_doubtful_reply_is_asked_for_once_more_and_then_taken(replies: list[str], value: int, calls: int) -> None:
    ledger = MemoryLedger()
    request = replace(REQUEST, doubt=unlikely)
    asked = ask(request, ScriptedGenerator(replies), ledger=ledger)
    assert (asked.value, asked.usage.calls, len(asked.notes)) == (value, calls, calls - 1)
    assert ledger.spending()[0].usage == asked.usage
    again = ask(request, ScriptedGenerator([]), ledger=ledger)
    assert (again.value, again.usage) == (value, Usage(cached=1))


def test_a_kept_reply_that_can_no_longer_be_read_is_asked_for_anew() -> None:
    ledger, generator = MemoryLedger(), ScriptedGenerator(['{"n": 3}', '{"n": 4}'])
    ask(REQUEST, generator, ledger=ledger)
    key = request_key(REQUEST, generator)
    ledger.keep(key, Generation('{"m": 3}', "stop", Usage()), "index", "scripted")
    assert ask(REQUEST, generator, ledger=ledger).value == 4
    assert ask(REQUEST, generator, ledger=ledger).usage == Usage(cached=1)


def test_the_key_is_made_of_all_that_determines_the_reply() -> None:
    generator = ScriptedGenerator([])
    other_model = ScriptedGenerator([])
    other_model.identity = "another"
    made = [
        request_key(REQUEST, generator),
        request_key(REQUEST, other_model),
        request_key(replace(REQUEST, messages=MESSAGES[1:]), generator),
        request_key(replace(REQUEST, messages=(Message("user", "Count."), MESSAGES[1])), generator),
        request_key(replace(REQUEST, schema={}), generator),
        request_key(replace(REQUEST, max_tokens=21), generator),
        request_key(replace(REQUEST, messages=(Message("user", "\ud800"),)), generator),
    ]
    assert len(set(made)) == len(made)
    assert request_key(replace(REQUEST, purpose="cue", documents=("d2",), attempts=5), generator) == made[0]


def test_the_budget_is_asked_before_and_told_after() -> None:
    budget, generator = Budget(), ScriptedGenerator(['{"n": 3}'] * 9)
    with budget.limited_to(38):  # the prompt has 5 tokens and the reply may take 20; 7 are spent by a call
        for _ in range(2):
            assert ask(REQUEST, generator, budget=budget).value == 3
        with pytest.raises(BudgetSpent):
            ask(REQUEST, generator, budget=budget)
    assert len(generator.asked) == 2
    assert ask(REQUEST, generator, budget=budget).value == 3


def test_what_the_ledger_holds_needs_no_budget() -> None:
    ledger, budget, generator = MemoryLedger(), Budget(), ScriptedGenerator(['{"n": 3}'])
    ask(REQUEST, generator, ledger=ledger)
    with budget.limited_to(1):
        assert ask(REQUEST, generator, ledger=ledger, budget=budget).value == 3


def test_a_budget_spent_at_the_second_attempt_bears_what_the_first_cost() -> None:
    budget = Budget()
    with budget.limited_to(27), pytest.raises(BudgetSpent) as spent:
        ask(REQUEST, ScriptedGenerator(["no", '{"n": 3}']), budget=budget)
    assert spent.value.usage.calls == 1
