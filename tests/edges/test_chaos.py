"""Indexing with a language model whose server fails in every way: nothing is lost, mixed up, hidden or paid twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.chaos_proxy import KINDS, UNHEARD, ChaosProxy
from tests.support.compare_stores import differences
from tests.support.llama_server import llama_server
from tests.support.ordeals import Adding, adding
from tests.support.scripted_extraction import documents, extracted, settings

DOCUMENTS = documents(20, 3)
PLACES = frozenset((document.id, ordinal) for document in DOCUMENTS for ordinal in range(3))
SHORT = 0.5
"""Seconds a client waits for a reply in the chaos; far more than the scripted server takes."""
CIRCUIT = 5


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a run in which nothing failed."""
    store = tmp_path_factory.mktemp("undisturbed") / "s.ecphory"
    with llama_server(extracted) as server:
        done = adding(store, settings(server.url), DOCUMENTS, server)
    assert done.calls == dict.fromkeys(PLACES, 1)
    assert done.report.dropped == 0
    assert is_whole(done)
    return store


def is_whole(done: Adding) -> bool:
    return done.held.there == PLACES and not (done.held.failed or done.held.empty or done.held.incomplete)


@pytest.mark.parametrize(("attempts", "seed"), [(1, 1), (2, 2)])
def test_no_document_is_done_while_incomplete_and_a_calm_run_does_the_rest(
    tmp_path: Path, undisturbed: Path, attempts: int, seed: int
) -> None:
    store = tmp_path / "s.ecphory"
    with llama_server(extracted) as server, ChaosProxy(server.address, seed=seed, hang=2 * SHORT) as proxy:
        wild = settings(proxy.url, attempts=attempts, timeout=SHORT, tries=3, failures=1000)
        first = adding(store, wild, DOCUMENTS, server)
        assert set(proxy.spoiled) == set(KINDS)
        assert 0.15 < proxy.spoiled.total() / proxy.chats < 0.45
        assert first.report.stopped is None
        assert len(first.report.added) == len(DOCUMENTS)  # what failed in part is there in part
        assert first.held.there == PLACES
        assert first.held.empty == frozenset()
        assert first.held.hidden == frozenset()
        assert {failure.source for failure in first.report.incomplete} == {id_ for id_, _ in first.held.failed}
        assert (attempts > 1) or first.held.failed  # a single attempt cannot survive the first echoed schema

        proxy.calm()
        calm = settings(proxy.url, attempts=attempts)
        second = adding(store, calm, DOCUMENTS, server)
        assert second.calls == dict.fromkeys(first.held.failed, 1)
        assert is_whole(second)
        assert differences(store, undisturbed) == []

        third = adding(store, calm, DOCUMENTS, server)
        assert third.calls == {}
        assert len(third.report.unchanged) == len(DOCUMENTS)


def test_a_server_that_stays_down_stops_the_job_and_what_was_paid_is_kept(tmp_path: Path, undisturbed: Path) -> None:
    store = tmp_path / "s.ecphory"
    breakdown = dict.fromkeys(range(25, 10_000), UNHEARD[1])
    with llama_server(extracted) as server, ChaosProxy(server.address, share=0.0, plan=breakdown) as proxy:
        first = adding(store, settings(proxy.url, tries=2, failures=CIRCUIT), DOCUMENTS, server)
        assert first.report.stopped is not None
        assert proxy.spoiled.total() <= 2 * (CIRCUIT + 4)  # four calls may be under way when the circuit opens
        assert first.held.hidden == frozenset()

        proxy.calm()
        second = adding(store, settings(proxy.url), DOCUMENTS, server)
        assert is_whole(second)
        assert first.calls + second.calls == Counter(dict.fromkeys(PLACES, 1))
        assert differences(store, undisturbed) == []
