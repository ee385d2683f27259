"""The figures of a run: context (Figure 4), k by data set (Figure 5), depth, and cost against quality."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ecphoryrag.evaluation.bench.reporting.numbers import INTERVAL, half_width, most, name, scale, seconds
from ecphoryrag.evaluation.bench.reporting.parts import Cell, Grid, Item, Panel, Part, Plot, Point, Series, groups
from ecphoryrag.evaluation.bench.reporting.tables import DEPTH, DEPTH_FIGURES, READING, depth_rows, reading
from ecphoryrag.evaluation.bench.table import TableRow

K, K_ENTITIES, CONTEXT = "k", "k_final", "context"
CONTEXTS = {"entities": "entities only", "chunks": "chunks only", "both": "both"}
ANSWERS = ("em", "f1")
_INTERVALS = f"Bars are 95 % intervals over the questions ({INTERVAL} standard errors on each side)."


def context(rows: Sequence[TableRow]) -> Part:
    """Figure 4: what the reader is shown, against k."""
    title = "Figure 4. Entities, chunks, or both in the context"
    varied = [row for row in rows if row.method == "paper" and row.questions]
    if len({_context(row) for row in varied}) < 2:
        return Part(title, ("This run does not vary what the reader is shown, so there is no Figure 4.",))
    if not all("em" in row.figures for row in varied):
        return Part(title, ("This run only retrieves; what the reader is shown tells in its answers alone.",))
    panels, k_final = [], sorted({str(row.parameters.get(K_ENTITIES, 20)) for row in varied if _context(row) == "both"})
    for dataset, encoder in dict.fromkeys((row.dataset, row.encoder) for row in varied):
        here = [row for row in varied if (row.dataset, row.encoder) == (dataset, encoder)]
        for figure in ANSWERS:
            series = _lines(here, _x_of_context, lambda row: _shown(row, several=len(k_final) > 1), figure)
            panels.append(Panel(f"{dataset}, {encoder}", "k", name(figure), series, most(figure)))
    caption = (
        f"k counts the chunks that the reader is given; of entities only, the entities. Both shows k chunks and "
        f"{' or '.join(k_final)} entities. {_INTERVALS}"
    )
    return Part(title, (_plot(caption, panels),))


def _shown(row: TableRow, *, several: bool) -> str:
    both = several and _context(row) == "both"
    return CONTEXTS[_context(row)] + (f", {row.parameters.get(K_ENTITIES, 20)} entities" if both else "")


def _context(row: TableRow) -> str:
    said = str(row.parameters.get(CONTEXT, "both"))
    return said if said in CONTEXTS else "both"


def _x_of_context(row: TableRow) -> float:
    entities = row.parameters.get(K_ENTITIES, 20)
    return float(str(entities)) if _context(row) == "entities" else float(row.k)


def by_k(rows: Sequence[TableRow]) -> Part:
    """Figure 5: EM and F1 against k, a line a data set."""
    title = "Figure 5. EM and F1 against k"
    varied = [row for row in rows if K in row.varied and row.questions]
    if not varied:
        return Part(title, ("This run does not vary k, so there is no Figure 5.",))
    if not all("em" in row.figures for row in varied):
        return Part(title, ("This run only retrieves; how many passages a reader is given tells in answers alone.",))
    panels = []
    for entry, encoder in dict.fromkeys((_entry(row), row.encoder) for row in varied):
        here = [row for row in varied if (_entry(row), row.encoder) == (entry, encoder)]
        for figure in ANSWERS:
            series = _lines(here, lambda row: float(row.k), lambda row: row.dataset, figure)
            panels.append(Panel(f"{entry}, {encoder}", "k", name(figure), series, most(figure)))
    return Part(title, (_plot(f"k counts the passages that the reader is given. {_INTERVALS}", panels),))


def _entry(row: TableRow) -> str:
    """The label without k."""
    others = ",".join(f"{key}={said}" for key, said in row.varied.items() if key != K)
    entry = row.label.partition("[")[0]
    return f"{entry}[{others}]" if others else entry


def depth(rows: Sequence[TableRow]) -> Part:
    """Table 2 as curves: what grows with the depth of search."""
    title = "Depth of the associative search, drawn"
    found = depth_rows(rows)
    if not found:
        return Part(title, ("This run does not vary the depth of search.",))
    panels = []
    for dataset, encoder in dict.fromkeys((row.dataset, row.encoder) for row in found):
        here = [row for row in found if (row.dataset, row.encoder) == (dataset, encoder)]
        for figure in DEPTH_FIGURES:
            if figure not in ("all@5", "passages") and all(figure in row.figures for row in here):
                series = _lines(here, lambda row: float(str(row.varied[DEPTH])), _reading, figure)
                panels.append(Panel(f"{dataset}, {encoder}", "depth", name(figure), series, most(figure)))
    return Part(title, (_plot(f"Lines are the two readings of the seed selection. {_INTERVALS}", panels),))


def _reading(row: TableRow) -> str:
    others = "".join(f", {key} {said}" for key, said in row.varied.items() if key not in (DEPTH, READING))
    return f"seeds of {reading(row)}{others}"


def cost(rows: Sequence[TableRow]) -> Part:
    """Quality against seconds and tokens of a question, and tokens of the index, for every method."""
    title = "Cost against quality"
    asked = [row for row in rows if row.query is not None and row.figures]
    if not asked:
        return Part(title, ("No question has been asked yet, so there is no cost to show.",))
    answered = any("em" in row.figures for row in asked)
    figure = "f1" if answered else "recall@5"
    axes: list[tuple[str, Callable[[TableRow], float]]] = [("seconds a question", _seconds)]
    if answered:
        axes.append(("tokens a question, language model", _tokens))
    axes.append(
        ("tokens to index, language model", _index_tokens)
        if any(_index_tokens(row) for row in asked)
        else ("tokens to index, encoder", lambda row: row.index.embedding_tokens)
    )
    items: list[Item] = []
    panels = []
    for (dataset, encoder), rows_here in groups(asked).items():
        here = [row for row in rows_here if figure in row.figures]
        for axis, of in axes:
            series = tuple(Series(row.label, (_point(row, figure, of(row)),)) for row in here)
            panels.append(Panel(f"{dataset}, {encoder}", axis, name(figure), series, most(figure), spread=True))
    left_out = dict.fromkeys(row.label for row in asked if figure not in row.figures)
    if left_out:
        items.append(f"Not drawn, since it has no {name(figure)}: {', '.join(left_out)}.")
    caption = (
        f"Up is better, left is cheaper; the horizontal axes are logarithmic, unless they begin with 0 and have even "
        f"steps; seconds are medians. {_INTERVALS}"
    )
    return Part(title, (_plot(caption, panels), *items))


def _seconds(row: TableRow) -> float:
    return row.query.seconds if row.query else 0.0


def _tokens(row: TableRow) -> float:
    return row.query.input_tokens + row.query.output_tokens if row.query else 0.0


def _index_tokens(row: TableRow) -> float:
    return row.index.input_tokens + row.index.output_tokens


def _point(row: TableRow, figure: str, x: float) -> Point:
    found = row.figures[figure]
    return Point(x, found.mean * scale(figure), half_width(figure, found))


def _lines(
    rows: Iterable[TableRow], x: Callable[[TableRow], float], line: Callable[[TableRow], str], figure: str
) -> tuple[Series, ...]:
    """A line for each name, its points by x; where several rows share a place, the first of them."""
    grouped: dict[str, dict[float, Point]] = {}
    for row in rows:
        if figure in row.figures:
            grouped.setdefault(line(row), {}).setdefault(x(row), _point(row, figure, x(row)))
    return tuple(Series(label, tuple(points[at] for at in sorted(points))) for label, points in grouped.items())


def _plot(caption: str, panels: Sequence[Panel]) -> Plot:
    """With all its numbers as a grid."""
    lines = [
        tuple(Cell(text) for text in (series.label, panel.title, _number(panel.x, point.x), panel.y, _said(point)))
        for panel in panels
        for series in panel.series
        for point in series.points
    ]
    return Plot(
        caption, tuple(panels), Grid("The numbers of the plots", ("line", "of", "at", "figure", "value"), tuple(lines))
    )


def _number(axis: str, x: float) -> str:
    return f"{axis}: {seconds(x) if 'seconds' in axis else f'{x:,.0f}'}"


def _said(point: Point) -> str:
    return f"{point.y:,.1f}" if point.error is None else f"{point.y:,.1f} ± {point.error:,.1f}"
