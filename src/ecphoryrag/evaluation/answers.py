"""Figures of a short answer: exact match and token F1 as SQuAD defines them (Rajpurkar et al. 2016, section 6.1).

Both compare after normalisation and take the best of the accepted answers. HotpotQA's and 2WikiMultihopQA's own
scripts differ in one point: there an answer of more words than a bare yes or no has an F1 of 0 against it.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

Normalisation = Literal["squad", "loose"]

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(answer: str) -> str:
    """Lower case, without ASCII punctuation and English articles, words parted by one space: SQuAD's own rule, kept
    as it is (also where it is crude: other scripts' punctuation stays) so that figures compare with published ones."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


_LOOSE_WORDS = frozenset(["a", "an", "the", "and", "but", "or", "is", "are", "was", "were"])


def normalise_loosely(answer: str) -> str:
    """As the public code of EcphoryRAG's publication has it: besides articles the words `and`, `but`, `or`, `is`,
    `are`, `was` and `were` are left out. Figures are higher by it, so it is for repeating that publication only."""
    words = answer.lower().translate(_PUNCTUATION).split()
    return " ".join(word for word in words if word not in _LOOSE_WORDS)


NORMALISERS: Mapping[Normalisation, Callable[[str], str]] = {"squad": normalise, "loose": normalise_loosely}


def exact_match(answer: str | None, accepted: Sequence[str], normalisation: Normalisation = "squad") -> float:
    """1.0 if the normalised answer equals an accepted one, else 0.0; no answer scores 0."""
    if answer is None:
        return 0.0
    normal = NORMALISERS[normalisation]
    return float(normal(answer) in {normal(reference) for reference in accepted})


def f1(answer: str | None, accepted: Sequence[str], normalisation: Normalisation = "squad") -> float:
    """Harmonic mean of token precision and recall, the best over the accepted answers; no answer scores 0."""
    if answer is None:
        return 0.0
    normal = NORMALISERS[normalisation]
    return max((_overlap(normal(answer).split(), normal(each).split()) for each in accepted), default=0.0)


def _overlap(answer: Sequence[str], reference: Sequence[str]) -> float:
    if not answer or not reference:
        return float(list(answer) == list(reference))
    common = (Counter(answer) & Counter(reference)).total()
    return 2 * common / (len(answer) + len(reference))
