"""What a language model adds to a recall, and that a recall goes on as before without one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from ecphoryrag.errors import Transient
from ecphoryrag.models.fakes import HashEncoder, ScriptedGenerator
from ecphoryrag.models.llm_questions import ModelCueFinder, ModelRelationLabeller
from ecphoryrag.ports import Finding, JsonSchema
from ecphoryrag.recall import Helpers, PreparedCache, RecallRequest, recall
from ecphoryrag.recall.helped import NO_FINDER, NO_LABELLER
from ecphoryrag.settings import MethodName, RecallSettings
from ecphoryrag.settings.recall import ModelCueSettings
from ecphoryrag.types import Generation, Message, Recall, Relation, Spending, Usage
from tests.support.memory_ledger import MemoryLedger
from tests.support.reference_view import ReferenceView, told

NAMES = ("Grey Pellin", "Ilka Varnholt", "Dunlisk", "Copper Gull", "Sallow Bay", "Mill")
TEXTS = (
    ("pellin", "The Grey Pellin is a ship that was built by Ilka Varnholt in 1871.", "Grey Pellin"),
    ("varnholt", "Ilka Varnholt came into the world at Dunlisk.", "Ilka Varnholt"),
    ("copper", "The Copper Gull is a tavern of the harbour where sailors were born.", "Copper Gull"),
    ("sallow", "Sallow Bay is a town of fishers who were born to the sea.", "Sallow Bay"),
    *((f"note{at}", f"Page {at} tells of wheat and of the Mill.", "") for at in range(9)),
)
QUESTION = "Where was the builder of the grey ship from 1871 born?"
ENCODER = HashEncoder(256)
SPENT = Spending("cue", "fake", Usage(1, 9, 3, seconds=99.0))


@dataclass
class Fake:
    """Says what it is told to, and remembers what it was asked."""

    names: tuple[str, ...] = ()
    labels: tuple[str | None, ...] | None = None
    notes: tuple[str, ...] = ()
    asked: list[tuple[str, int]] = field(default_factory=list)

    def find_cues(self, question: str) -> Finding:
        self.asked.append((question, 0))
        return Finding(names=self.names, spending=(SPENT,), notes=self.notes)

    def label_relations(self, question: str, relations: Sequence[Relation]) -> Finding:
        self.asked.append((question, len(relations)))
        if self.labels is None:
            return Finding(notes=self.notes)
        labelled = [replace(one, label=label) for one, label in zip(relations, self.labels, strict=True)]
        return Finding(relations=tuple(labelled), spending=(replace(SPENT, purpose="relation"),))


def ask(
    helpers: Helpers | None,
    question: str = QUESTION,
    *,
    cues: bool = False,
    relations: int = 0,
    share: float = 0.5,
    method: MethodName = "ecphory",
) -> Recall:
    settings = RecallSettings(llm=ModelCueSettings(cues=cues, relations=relations, cue_share=share))
    view = ReferenceView([told(name, text, NAMES, title=title) for name, text, title in TEXTS])
    request = RecallRequest.of(settings, k=3, method=method)
    if helpers is None:
        return recall(question, view, ENCODER, request, PreparedCache())
    return recall(question, view, ENCODER, request, PreparedCache(), helpers)


def bare(recalled: Recall) -> Recall:
    """What was recalled, whatever it cost and whatever is noted on it."""
    return replace(recalled, usage=Usage(), spending=(), notes=())


PLAIN = ask(None)


def test_a_name_of_the_model_is_a_cue_without_a_place_and_brings_its_chunk() -> None:
    finder = Fake(names=("ilka varnholt", "Nobody at All"))
    found = ask(Helpers(cue_finder=finder), cues=True)
    assert finder.asked == [(QUESTION, 0)]
    assert not PLAIN.cues
    (cue,) = found.cues
    assert (cue.text, cue.start, cue.end, cue.entity_key) == ("ilka varnholt", None, None, "ilka varnholt")
    assert cue.weight == 1.0
    second = next(one for one in found.chunks if one.chunk.document_id == "varnholt")
    assert second.score > next((one.score for one in PLAIN.chunks if one.chunk.document_id == "varnholt"), 0.0)
    steps = [step for one in found.chunks for step in one.path.steps if step.kind == "cue"]
    assert steps
    assert {(step.text, step.start, step.document_id) for step in steps} == {("ilka varnholt", None, None)}
    assert found.reason is None


def test_a_cue_of_the_model_weighs_its_share_beside_one_of_the_question() -> None:
    question = "Was Sallow Bay painted?"
    both = ask(Helpers(cue_finder=Fake(names=("Copper Gull",))), question, cues=True, share=0.25)
    (asked_, told_) = both.cues
    assert (asked_.entity_name, told_.entity_name) == ("Sallow Bay", "Copper Gull")
    assert (asked_.start, told_.start) == (4, None)
    # Both are named by one document and held by one chunk, so that their shares alone make the difference.
    assert told_.weight / asked_.weight == pytest.approx(0.25)
    assert asked_.weight + told_.weight == pytest.approx(1)


@pytest.mark.parametrize(
    "names", [(), ("Sallow Bay",), ("the sallow bay",), ("Nobody",), ("?!", ""), ("Sallow Bay of old",)]
)
def test_names_that_are_cues_already_or_are_not_known_change_nothing(names: tuple[str, ...]) -> None:
    question = "Was Sallow Bay painted?"
    assert bare(ask(Helpers(cue_finder=Fake(names=names)), question, cues=True)) == bare(ask(None, question))


def test_a_plain_word_of_the_question_is_no_name_because_the_model_writes_it_as_one() -> None:
    question = "Is there a mill?"
    assert bare(ask(Helpers(cue_finder=Fake(names=("Mill",))), question, cues=True)) == bare(ask(None, question))


def test_what_only_the_model_named_may_be_the_bridge_of_a_chain() -> None:
    question = "Where did the builder of the Grey Pellin come into the world?"
    helpers = Helpers(cue_finder=Fake(names=("Ilka Varnholt",)))
    second = next(one for one in ask(helpers, question, cues=True).chunks if one.chunk.document_id == "varnholt")
    plain = next(one for one in ask(None, question).chunks if one.chunk.document_id == "varnholt")
    assert plain.signals["chain"] > 0
    assert second.signals["chain"] > 0


def test_a_share_of_zero_changes_nothing() -> None:
    assert bare(ask(Helpers(cue_finder=Fake(names=("Dunlisk",))), cues=True, share=0.0)) == bare(PLAIN)


def test_a_common_word_is_a_cue_if_the_model_writes_it_as_a_name() -> None:
    assert [cue.entity_key for cue in ask(Helpers(cue_finder=Fake(names=("Mill",))), cues=True).cues] == ["mill"]
    assert not ask(Helpers(cue_finder=Fake(names=("mill",))), cues=True).cues


def test_what_is_not_asked_for_is_not_called() -> None:
    fake = Fake(names=("Dunlisk",), labels=("x",))
    assert bare(ask(Helpers(fake, fake))) == bare(PLAIN)
    for method in ("paper", "dense", "bm25", "hybrid"):
        ask(Helpers(fake, fake), cues=True, relations=3, method=method)
    assert not fake.asked


def test_without_a_model_the_recall_is_the_plain_one_and_says_so() -> None:
    found = ask(Helpers(), cues=True, relations=2)
    assert found.notes == (NO_FINDER, NO_LABELLER)
    assert bare(found) == bare(PLAIN)
    assert found.spending == PLAIN.spending


def test_a_failed_model_leaves_the_plain_recall_and_a_note() -> None:
    failed = Fake(notes=("no cues: it broke",))
    found = ask(Helpers(failed, failed), cues=True, relations=2)
    assert found.notes == ("no cues: it broke", "no cues: it broke")
    assert bare(found) == bare(PLAIN)


def test_the_best_relations_are_labelled_and_nothing_else_of_them_changes() -> None:
    plain = ask(None, "Who built the Grey Pellin?")
    assert len(plain.relations) > 1
    labeller = Fake(labels=("was built by",))
    found = ask(Helpers(labeller=labeller), "Who built the Grey Pellin?", relations=1)
    assert labeller.asked == [("Who built the Grey Pellin?", 1)]
    assert [one.label for one in found.relations] == ["was built by", *(None for _ in plain.relations[1:])]
    assert [replace(one, label=None) for one in found.relations] == list(plain.relations)
    assert bare(replace(found, relations=())) == bare(replace(plain, relations=()))


def test_costs_are_told_by_purpose_and_the_time_is_that_of_the_whole() -> None:
    fake = Fake(names=("Ilka Varnholt",), labels=("was built by",))
    found = ask(Helpers(fake, fake), relations=1, cues=True)
    assert [one.purpose for one in found.spending] == ["embed", "cue", "relation"]
    assert found.spending[0].model == "hash"
    assert found.usage.calls == 2
    assert found.usage.embedding_tokens == PLAIN.usage.embedding_tokens > 0
    assert found.usage.seconds < 50


RELATIONS = (
    Relation("Grey Pellin", "Ilka Varnholt", "The Grey Pellin was built by Ilka Varnholt.", "d1", 0, 43, 0.9),
    Relation("Ilka Varnholt", "Dunlisk", "Ilka Varnholt came to\n[2] Dunlisk.", "d2", 0, 30, 0.5),
)


def test_the_model_names_cues_once_and_pays_once() -> None:
    ledger = MemoryLedger()
    generator = ScriptedGenerator(['```json\n{"names": ["Ilka Varnholt", " ", "Ilka Varnholt", "Dun\\nlisk"]}\n```'])
    finding = ModelCueFinder(generator, ledger).find_cues(QUESTION)
    assert finding.names == ("Ilka Varnholt", "Dun lisk")
    assert (finding.spending, finding.notes) == (ledger.spending(), ())
    assert finding.spending[0].purpose == "cue"
    assert generator.asked[0][-1].content == f"Question: {QUESTION}"
    again = ModelCueFinder(generator, ledger).find_cues(QUESTION)
    assert (again.names, again.spending) == (finding.names, (Spending("cue", "scripted", Usage(cached=1)),))


def test_the_model_labels_relations_in_order() -> None:
    ledger = MemoryLedger()
    repeated = "It is said that Ilka Varnholt came to Dunlisk"
    generator = ScriptedGenerator([json.dumps({"labels": ["was\u0007 built by", repeated]})])
    finding = ModelRelationLabeller(generator, ledger).label_relations(QUESTION, RELATIONS)
    assert [one.label for one in finding.relations] == ["was built by", None]
    assert [replace(one, label=None) for one in finding.relations] == list(RELATIONS)
    assert [one.purpose for one in finding.spending] == ["relation"]
    lines = generator.asked[0][-1].content.split("\n")
    assert lines[1] == "[1] Grey Pellin | Ilka Varnholt | The Grey Pellin was built by Ilka Varnholt."
    assert lines[2] == "[2] Ilka Varnholt | Dunlisk | Ilka Varnholt came to (2) Dunlisk."
    ledger.forget(["d2"])
    assert not ledger.history("relation", "scripted")
    assert ModelRelationLabeller(ScriptedGenerator([])).label_relations(QUESTION, ()) == Finding()


@pytest.mark.parametrize("bad", ["", '{"names": 3}', '{"names": [3]}', '{"labels": ["x"]}', '{"labels": [3, 4]}', "{"])
def test_replies_that_cannot_be_used_are_notes(bad: str) -> None:
    cues = ModelCueFinder(ScriptedGenerator([bad] * 2)).find_cues(QUESTION)
    labels = ModelRelationLabeller(ScriptedGenerator([bad] * 2)).label_relations(QUESTION, RELATIONS)
    assert (cues.names, labels.relations) == ((), RELATIONS)
    for finding, what in ((cues, "no cues"), (labels, "no relations labelled")):
        assert len(finding.notes) == 2
        assert finding.notes[1].startswith(f"{what} by the language model: the reply")
        assert finding.spending[0].usage.calls == 2


class Failing(ScriptedGenerator):
    def generate(self, messages: Sequence[Message], schema: JsonSchema | None, max_tokens: int) -> Generation:
        raise Transient("the server is busy")


def test_a_model_that_fails_is_a_note() -> None:
    cues = ModelCueFinder(Failing([])).find_cues(QUESTION)
    labels = ModelRelationLabeller(Failing([])).label_relations(QUESTION, RELATIONS)
    assert cues == Finding(notes=("no cues by the language model: the server is busy",))
    assert labels == Finding(
        relations=RELATIONS, notes=("no relations labelled by the language model: the server is busy",)
    )
