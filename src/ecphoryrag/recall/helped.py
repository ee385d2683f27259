"""What a language model adds to a recall, where the settings ask for it and there is one."""

from __future__ import annotations

from dataclasses import replace

from ecphoryrag.ports import Finding
from ecphoryrag.recall.request import Helpers, RecallRequest
from ecphoryrag.types import Recall

NO_HELPERS = Helpers()
NO_FINDER = "no cues by a language model, since none is configured (recall.llm.cues)"
NO_LABELLER = "no relations labelled, since no language model is configured (recall.llm.relations)"


class Helped:
    """The help for one question: what it found, what it cost, and why it found less than was asked for."""

    def __init__(self, question: str, request: RecallRequest, helpers: Helpers) -> None:
        self.request = request
        self._question = question
        self._helpers = helpers
        self._findings: list[Finding] = []

    def names(self) -> tuple[str, ...]:
        """The names that a language model reads out of the question, if the settings ask for them."""
        if not self.request.settings.llm.cues:
            return ()
        finder = self._helpers.cue_finder
        finding = Finding(notes=(NO_FINDER,)) if finder is None else finder.find_cues(self._question)
        self._findings.append(finding)
        return finding.names

    def labelled(self, recalled: Recall) -> Recall:
        """The recall with its best relations labelled, if the settings ask for it, and with all costs and notes."""
        relations, most = recalled.relations, self.request.settings.llm.relations
        if most and relations:
            labeller = self._helpers.labeller
            first = relations[:most]
            finding = (
                Finding(notes=(NO_LABELLER,)) if labeller is None else labeller.label_relations(self._question, first)
            )
            self._findings.append(finding)
            # A label is all that is taken: which relations there are is not the model's to say.
            labels = [one.label for one in finding.relations] if len(finding.relations) == len(first) else []
            named = tuple(replace(one, label=label) for one, label in zip(first, labels, strict=False))
            relations = (*named, *relations[len(named) :])
        spending = tuple(one for finding in self._findings for one in finding.spending)
        notes = tuple(note for finding in self._findings for note in finding.notes)
        return replace(recalled, relations=relations, spending=spending, notes=notes)
