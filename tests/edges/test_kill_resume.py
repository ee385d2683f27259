"""An indexing with a language model that is killed again and again ends as if it had not been, and pays for it once."""

from __future__ import annotations

from pathlib import Path

from ecphoryrag.indexing.extracting import threads_for
from tests.support.compare_stores import differences
from tests.support.llama_server import llama_server
from tests.support.ordeals import Job, adding, kills
from tests.support.paid import paid_places
from tests.support.scripted_extraction import documents, extracted, settings

KILLS = 6
AT_ONCE = 4
DOCUMENTS = documents(24, 3)


def test_killed_runs_resume_at_the_missing_calls(tmp_path: Path) -> None:
    store, whole = tmp_path / "killed" / "s.ecphory", tmp_path / "whole.ecphory"
    store.parent.mkdir()
    with llama_server(extracted, latency=0.03) as server:
        undisturbed = adding(whole, settings(server.url, encoder="static"), DOCUMENTS, server)
        places = set(undisturbed.calls)
        assert len(places) == 72
        configured = settings(server.url, encoder="static", concurrency=AT_ONCE)
        job = Job(store, configured, DOCUMENTS, server, lambda: paid_places(store, configured, DOCUMENTS), seed=11)
        done = kills(job, KILLS)

        assert len(done.runs) == KILLS
        assert done.paid_again() == {}
        assert max(done.in_flight()) <= threads_for(AT_ONCE), "made, and the reply not kept yet"
        assert set(done.calls) == places
        assert done.calls.total() == len(places) + sum(done.in_flight())
        assert differences(store, whole) == []
        after = adding(store, configured, DOCUMENTS, server)
        assert after.calls == {}
