"""How numbers are written, and which of a column are marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ecphoryrag.evaluation.bench.reporting.parts import Mark
from ecphoryrag.evaluation.bench.table import Figure
from ecphoryrag.evaluation.bench.watch import SIZES

NONE = "–"
NAMES: Mapping[str, str] = {
    "em": "EM",
    "f1": "F1",
    "gold_shown": "gold shown",
    "all@5": "all gold@5",
    "all@10": "all gold@10",
    "mrr": "MRR",
    "ndcg@10": "nDCG@10",
    "context_tokens": "context tokens",
}
"""Of figures, where they differ from what the rows say."""
INTERVAL = 1.96
"""Standard errors on each side of a mean: 95 % of a normal distribution."""


def name(figure: str) -> str:
    """A figure's name for readers."""
    return NAMES.get(figure, figure)


def scale(figure: str) -> float:
    """Shares are told in hundredths; sizes as they are."""
    return 1.0 if figure in SIZES else 100.0


def most(figure: str) -> float:
    """The greatest value that a figure can have, as it is shown."""
    return math.inf if figure in SIZES else 100.0


def value(figure: str, found: Figure) -> str:
    """The mean, as a share of a hundred with one decimal."""
    return f"{found.mean * scale(figure):,.1f}"


def with_spread(figure: str, found: Figure) -> str:
    """The mean and, where there are several seeds, its deviation; of one seed the standard error, in brackets.

    An error of 0 is not shown: that all questions came out alike is no sign of precision.
    """
    factor = scale(figure)
    if found.deviation is not None:
        return f"{value(figure, found)} ± {found.deviation * factor:,.1f}"
    if found.error:
        return f"{value(figure, found)} (± {found.error * factor:,.1f})"
    return value(figure, found)


def half_width(figure: str, found: Figure) -> float | None:
    """Of the interval over the questions; None if nothing varies, which one question may also say."""
    return None if not found.error else INTERVAL * found.error * scale(figure)


def marks(values: Sequence[float | None]) -> list[Mark]:
    """The best and the second best of a column, by what is shown (one decimal), so that equals are marked alike.

    Nothing is marked where there is nothing to choose: fewer than two values, or all equal.
    """
    shown = [None if each is None else round(each, 1) for each in values]
    steps = sorted({each for each in shown if each is not None}, reverse=True)
    if len(steps) < 2:
        return [""] * len(shown)
    named: dict[float, Mark] = {steps[0]: "best", steps[1]: "second"}
    return ["" if each is None else named.get(each, "") for each in shown]


def count(number: float, *, estimated: bool = False) -> str:
    """A number of tokens or the like, without decimals."""
    return f"{'~' if estimated else ''}{number:,.0f}"


def seconds(number: float) -> str:
    """With the digits that its size deserves."""
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.3f}"
