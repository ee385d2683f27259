"""Plots as SVG to stand inside a page: no outer resource, no date, colours of the page's theme, text as text.

The same plot is the same bytes: matplotlib's settings are its defaults and those below, whatever the user's are.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ecphoryrag.errors import EcphoryError
from ecphoryrag.evaluation.bench.reporting.parts import Panel, Plot, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIGHT = ("#0072b2", "#c04e00", "#00795a", "#a3467f", "#7a6200", "#3f5fc4", "#6b6b6b")
"""After Okabe and Ito's colours for all kinds of colour vision, darkened to 4.5 : 1 and more on white."""
DARK = ("#56b4e9", "#ff9044", "#2fc79a", "#e79bc6", "#f0e442", "#9db4ff", "#b5b5b5")
"""The same for a dark page."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Lines differ in marker and dashes too; 7 colours and 8 markers repeat together only after 56."""
Dashes = Literal["-", "--", ":", "-.", ""]
DASHES: tuple[Dashes, ...] = ("-", "--", ":", "-.")
INK = "#123456"
"""Stands for the page's colour of text until the SVG is written."""
SETTINGS: Mapping[str, object] = {
    "svg.hashsalt": "ecphory",
    "svg.fonttype": "none",
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
WIDTH, HEIGHT = 4.2, 3.0
"""Inches of a panel: as wide as a phone."""
LINE = 0.24
"""Inches of a line of the legend."""
WITHOUT = {"Date": None, "Creator": None, "Format": None, "Type": None}


def require_matplotlib() -> None:
    """Raises EcphoryError, before any work is done, if the extra `eval` is not installed."""
    from importlib.util import find_spec  # noqa: PLC0415 - of this check alone

    missing = [package for package in ("matplotlib", "jinja2") if find_spec(package) is None]
    if missing:
        raise EcphoryError(
            f"the report needs the package {missing[0]}, which is missing: pip install 'ecphoryrag[eval]'"
        )


def panels(plot: Plot, prefix: str) -> Iterator[str]:
    """An SVG for each panel; ``prefix`` begins every id, so that many stand in one page."""
    labels = plot.labels
    for number, panel in enumerate(plot.panels):
        with _settings():
            yield _svg(_panel(panel, labels), f"{prefix}-{number}")


def legend(plot: Plot, prefix: str) -> str | None:
    """The legend that all panels share, as an SVG; None for a single line."""
    labels = plot.labels
    if len(labels) < 2:
        return None
    with _settings():
        from matplotlib.figure import Figure  # noqa: PLC0415 - a second to import
        from matplotlib.lines import Line2D  # noqa: PLC0415

        single = all(len(series.points) == 1 for panel in plot.panels for series in panel.series)
        figure = Figure(figsize=(WIDTH, LINE * len(labels) + 0.1))
        handles = []
        for label in labels:
            style = _style(labels, label, single=single)
            handle = Line2D(
                [], [], color=style.colour, marker=style.marker, linestyle=style.dashes, label=_plain(label)
            )
            handle.set_markersize(style.size)
            handle.set_linewidth(style.width)
            handles.append(handle)
        figure.legend(handles=handles, loc="center left", frameon=False, borderaxespad=0.0, handlelength=3.2)
        return _svg(figure, f"{prefix}-legend")


def described(panel: Panel) -> str:
    """The panel in words, for those who do not see it."""
    lines = [
        f"{series.label}: " + ", ".join(f"{point.y:.1f} at {point.x:,.6g}" for point in series.points)
        for series in panel.series
    ]
    return f"{panel.y} against {panel.x}, {panel.title}. " + "; ".join(lines) + "."


@contextmanager
def _settings() -> Iterator[None]:
    import matplotlib.style  # noqa: PLC0415 - a second to import

    with matplotlib.style.context(["default", dict(SETTINGS)]):
        yield


@dataclass(frozen=True, slots=True)
class _Style:
    colour: str
    marker: str
    dashes: Dashes
    size: float
    """Points, of the marker."""
    width: float
    """Points, of the line."""


def _style(labels: Sequence[str], label: str, *, single: bool) -> _Style:
    """Of a line, by its place; later lines are thinner, so that each of those that coincide is seen."""
    place = labels.index(label)
    return _Style(
        LIGHT[place % len(LIGHT)],
        MARKERS[place % len(MARKERS)],
        "" if single else DASHES[place % len(DASHES)],
        6.0 if single else max(4.5, 8.0 - 1.5 * place),
        max(1.4, 3.2 - 0.9 * place),
    )


def _panel(panel: Panel, labels: Sequence[str]) -> Figure:
    from matplotlib.figure import Figure  # noqa: PLC0415 - a second to import

    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.add_subplot()
    for series in panel.series:
        errors = [_bar(point, panel.most) for point in series.points]
        style = _style(labels, series.label, single=len(series.points) == 1)
        axes.errorbar(
            [point.x for point in series.points],
            [point.y for point in series.points],
            yerr=[list(side) for side in zip(*errors, strict=True)] if any(map(any, errors)) else None,
            capsize=2.0,
            elinewidth=0.8,
            color=style.colour,
            marker=style.marker,
            linestyle=style.dashes,
            markersize=style.size,
            linewidth=style.width,
        )
    axes.set_title(_plain(panel.title))
    axes.set_xlabel(_plain(panel.x))
    axes.set_ylabel(_plain(panel.y))
    _scale(axes, panel)
    return figure


def _bar(point: Point, most: float) -> tuple[float, float]:
    """Below and above the point, as far as there are values."""
    error = point.error or 0.0
    return min(error, point.y), max(0.0, min(error, most - point.y))


def _scale(axes: Axes, panel: Panel) -> None:
    """Heights from 0, so that no difference looks larger than it is; widths as the panel asks."""
    tops = [point.y + _bar(point, panel.most)[1] for series in panel.series for point in series.points]
    axes.set_ylim(0.0, (max(tops, default=0.0) or 1.0) * 1.06)
    xs = sorted({point.x for series in panel.series for point in series.points})
    if panel.spread and xs and xs[-1] > 0:
        from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator  # noqa: PLC0415 - a second to import

        least = min(x for x in xs if x > 0)
        if xs[-1] < 2 * xs[0]:  # too near to each other for ticks of a logarithm
            axes.set_xlim(0.0, xs[-1] * 1.15)
            axes.xaxis.set_major_locator(MaxNLocator(4))
        elif xs[0] > 0:
            axes.set_xscale("log")
            axes.set_xlim(least / 1.6, xs[-1] * 1.6)
            few = xs[-1] / least < 100  # a tick each decade is then too little, or none
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
        else:
            axes.set_xscale("symlog", linthresh=10.0 ** _exponent(least))
            axes.set_xlim(-(10.0 ** _exponent(least)) / 4, xs[-1] * 1.6)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(_amount)
    elif len(xs) <= 8:
        axes.set_xticks(xs)


def _exponent(x: float) -> int:
    """Of the power of ten at or below ``x``."""
    return int(f"{x:e}".partition("e")[2])


def _amount(x: float, place: float) -> str:
    del place
    return f"{x:,.10g}"


def _plain(text: str) -> str:
    """Dollars begin a formula in matplotlib."""
    return text.replace("$", r"\$")


_ID = re.compile(r'(\bid="|href="#|url\(#)')
_STYLED = re.compile("|".join([INK, *LIGHT]), re.IGNORECASE)


def _svg(figure: Figure, prefix: str) -> str:
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata=WITHOUT)
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = _ID.sub(rf"\g<1>{prefix}-", text)
    return _STYLED.sub(_theme, text).strip()


def _theme(found: re.Match[str]) -> str:
    colour = found[0].lower()
    return "currentColor" if colour == INK else f"var(--c{LIGHT.index(colour)}, {colour})"
