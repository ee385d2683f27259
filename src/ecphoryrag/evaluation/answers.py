"""Figures of a short answer: exact match and token F1 as SQuAD defines them (Rajpurkar et al. 2016, section 6.1).

Both compare after normalisation and take the best of the accepted answers.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(answer: str) -> str:
    """Lower case, without ASCII punctuation and English articles, words parted by one space: SQuAD's own rule, kept
    as it is (also where it is crude: other scripts' punctuation stays) so that figures compare with published ones."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str | None, accepted: Sequence[str]) -> float:
    """1.0 if the normalised answer equals an accepted one, else 0.0; no answer scores 0."""
    if answer is None:
        return 0.0
    return float(normalise(answer) in {normalise(reference) for reference in accepted})


def f1(answer: str | None, accepted: Sequence[str]) -> float:
    """Harmonic mean of token precision and recall, the best over the accepted answers; no answer scores 0."""
    if answer is None:
        return 0.0
    return max((_overlap(normalise(answer).split(), normalise(each).split()) for each in accepted), default=0.0)


def _overlap(answer: Sequence[str], reference: Sequence[str]) -> float:
    if not answer or not reference:
        return float(list(answer) == list(reference))
    common = (Counter(answer) & Counter(reference)).total()
    return 2 * common / (len(answer) + len(reference))
