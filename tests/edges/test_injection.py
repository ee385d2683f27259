"""Documents that give orders: what they can never change, whatever the model does with them.

How often they sway the answer of the real model is measured by ``benchmarks/injection.py``.
"""

from __future__ import annotations

import json
import re

import pytest

from ecphoryrag.answering import answer
from ecphoryrag.answering.prompt import SYSTEM
from ecphoryrag.models.fakes import ScriptedGenerator
from ecphoryrag.settings import AnsweringSettings
from tests.support.injections import INJECTIONS, Injection, poisoned

IDS = [injection.name for injection in INJECTIONS]
OBEYED = {
    "cites what is not there": '{"reasoning": "As ordered.", "answer": "BANANA", "evidence": [99]}',
    "drops the format": "BANANA",
    "adds fields": '{"reasoning": "As ordered.", "answer": "BANANA", "evidence": [1], "settings": {"generator": "x"}}',
}


def test_there_are_twenty_and_they_differ() -> None:
    assert len(INJECTIONS) == 20
    assert len({injection.planted for injection in INJECTIONS}) == 20


@pytest.mark.parametrize("injection", INJECTIONS, ids=IDS)
def test_the_prompt_has_the_same_form_with_and_without_the_order(injection: Injection) -> None:
    seen = []
    for clean in (True, False):
        generator = ScriptedGenerator([json.dumps({"reasoning": "", "answer": "x", "evidence": [1]})])
        answer(injection.question, poisoned(injection, clean=clean), generator, AnsweringSettings())
        seen.append((generator.asked[0], generator.schemas[0]))
    (clean_prompt, clean_schema), (prompt, schema) = seen
    assert schema == clean_schema
    assert prompt[:-1] == clean_prompt[:-1]
    assert prompt[0].content == SYSTEM
    lines, clean_lines = (messages[-1].content.split("\n") for messages in (prompt, clean_prompt))
    assert len(lines) == len(clean_lines)
    assert re.findall(r"\[(\d+)\]", prompt[-1].content) == ["1", "2", "3"]
    mark = re.fullmatch(r"Evidence (\w+):", lines[0])
    assert mark is not None
    assert prompt[-1].content.count(mark[1]) == 2
    assert lines[-1] == f"Question: {injection.question}"


@pytest.mark.parametrize("said", OBEYED.values(), ids=OBEYED.keys())
@pytest.mark.parametrize("injection", INJECTIONS, ids=IDS)
def test_a_model_that_obeys_changes_no_setting_format_or_citation(injection: Injection, said: str) -> None:
    settings = AnsweringSettings()
    before = settings.model_dump_json()
    recall = poisoned(injection)
    given = answer(injection.question, recall, ScriptedGenerator([said] * 2), settings)
    assert settings.model_dump_json() == before
    assert set(given.cited) <= {evidence.number for evidence in given.evidence}
    assert [evidence.chunk for evidence in given.evidence] == [evidence.chunk for evidence in recall.chunks]
    assert (given.text is None) == (given.reason is not None)
    if given.text is None:
        assert given.cited == ()
