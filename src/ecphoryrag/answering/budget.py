"""Evidence within an exact token budget, counted by the model's own tokenizer; nothing is cut in silence.

Long pieces give way before whole pieces do: each is held to an equal share of the budget, what short ones leave goes
to the long ones, and a long one keeps the sentences that matter to the question. When the shares get too small to say
anything, the weakest piece is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ecphoryrag.answering.prompt import Piece, build_prompt
from ecphoryrag.answering.select import by_worth, link_lines
from ecphoryrag.errors import PromptTooLong
from ecphoryrag.ports import Generator
from ecphoryrag.text.sentences import split_sentences
from ecphoryrag.types import Message, Recall, Sentence

LEAST_TOKENS = 64
"""A piece with less room than this says too little: about two sentences."""
OMITTED = " … "


@dataclass(frozen=True, slots=True)
class Fitted:
    """What goes into the prompt, and what was done to make it fit."""

    pieces: tuple[Piece, ...]
    links: tuple[str, ...]
    notes: tuple[str, ...]


def fit_evidence(recall: Recall, generator: Generator, limit: int, links: int) -> Fitted:
    """The recalled evidence and up to ``links`` of its relations, in ``limit`` tokens beyond the prompt without them.

    ``recall`` must hold at least one chunk. Raises PromptTooLong if not even a part of the best piece fits.
    """
    return _Budget(recall, generator, limit, links).fit()


class _Budget:
    """One fitting: counts are asked of the generator, never estimated."""

    def __init__(self, recall: Recall, generator: Generator, limit: int, links: int) -> None:
        self._recall, self._generator, self._limit, self._links = recall, generator, limit, links
        self._base = self._count((), ())
        self._empty = generator.count_tokens([Message("user", "")])

    def fit(self) -> Fitted:
        pieces = [Piece(evidence, evidence.chunk.text) for evidence in self._recall.chunks]
        pieces = self._fit_pieces(pieces)
        kept, given = len(pieces), len(self._recall.chunks)
        notes = []
        shortened = [number for number, piece in enumerate(pieces, 1) if piece.text != piece.evidence.chunk.text]
        if shortened:
            named = ", ".join(str(number) for number in shortened)
            notes.append(f"evidence {named} shortened to the sentences that matter, to fit {self._limit} tokens")
        if kept < given:
            notes.append(
                f"the weakest {given - kept} of {given} pieces of evidence left out, to fit {self._limit} tokens"
            )
        return Fitted(tuple(pieces), self._fit_links(pieces), tuple(notes))

    def _fit_pieces(self, pieces: list[Piece]) -> list[Piece]:
        sizes = [self._count([piece], ()) - self._base for piece in pieces]
        # A piece's number and mark may be a token longer beside others than alone; the whole is what is measured.
        slack = 0
        while pieces:
            share = _share(sizes, self._limit - slack)
            if share < min(LEAST_TOKENS, max(sizes)) and len(pieces) > 1:
                pieces, sizes = pieces[:-1], sizes[:-1]
                continue
            fitted = [
                piece if size <= share else self._shorten(piece, share)
                for piece, size in zip(pieces, sizes, strict=True)
            ]
            if any(after.text != before.text and not after.text for before, after in zip(pieces, fitted, strict=True)):
                pieces, sizes = pieces[:-1], sizes[:-1]
                continue
            excess = self._count(fitted, ()) - self._base - self._limit
            if excess <= 0:
                return fitted
            slack += excess
        raise PromptTooLong(
            f"not even a part of the best piece of evidence fits the {self._limit} tokens there are for it: raise "
            "answering.evidence_tokens and the context (models.local.context, or that of its server)"
        )

    def _fit_links(self, pieces: Sequence[Piece]) -> tuple[str, ...]:
        """As many of the best relations as there is room for; they mostly repeat the evidence, so no note is made."""
        links: tuple[str, ...] = ()
        for line in link_lines(self._recall, pieces)[: self._links]:
            if self._count(pieces, (*links, line)) - self._base > self._limit:
                break
            links = (*links, line)
        return links

    def _shorten(self, piece: Piece, room: int) -> Piece:
        """The piece with the sentences that matter most, in their order, in at most ``room`` tokens; maybe none."""
        text = piece.evidence.chunk.text
        sentences = split_sentences(text)
        left = room - (self._count([Piece(piece.evidence, "")], ()) - self._base)
        chosen: list[int] = []
        order = by_worth(piece.evidence, sentences, self._recall)
        for at in order:
            cost = self._tokens(sentences[at].text + OMITTED)
            if cost <= left:
                chosen.append(at)
                left -= cost
        if not chosen and sentences:
            return Piece(piece.evidence, self._cut(sentences[order[0]].text, left))
        return Piece(piece.evidence, _join(sentences, sorted(chosen)))

    def _cut(self, text: str, room: int) -> str:
        """The longest beginning of one overlong sentence that takes at most ``room`` tokens."""
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self._tokens(text[:middle] + OMITTED) <= room:
                low = middle
            else:
                high = middle - 1
        return text[:low] + OMITTED if low else ""

    def _tokens(self, text: str) -> int:
        return self._generator.count_tokens([Message("user", text)]) - self._empty

    def _count(self, pieces: Sequence[Piece], links: Sequence[str]) -> int:
        return self._generator.count_tokens(build_prompt(self._recall.question, pieces, links))


def _share(sizes: Sequence[int], total: int) -> int:
    """The largest share, so that all sizes held to it are at most ``total`` together; what is small leaves its rest."""
    rest, left = total, len(sizes)
    for size in sorted(sizes):
        if size * left > rest:
            return rest // left
        rest -= size
        left -= 1
    return max(sizes)


def _join(sentences: Sequence[Sentence], chosen: Sequence[int]) -> str:
    """The chosen sentences in order, with a mark where others were left out."""
    text, last = "", -1
    for at in chosen:
        if text:
            text += " " if at == last + 1 else OMITTED
        elif at:
            text = OMITTED.lstrip()
        text += sentences[at].text.strip()
        last = at
    return text + (OMITTED.rstrip() if chosen and last < len(sentences) - 1 else "")
