"""The report as one HTML page. Jinja escapes whatever a template prints; only our own SVGs are printed as they are."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from ecphoryrag.evaluation.bench.reporting.browse import Browser
from ecphoryrag.evaluation.bench.reporting.parts import Grid, Item, Part, Plot
from ecphoryrag.evaluation.bench.reporting.plots import DARK, LIGHT, described, legend, panels


@dataclass(frozen=True, slots=True)
class Drawn:
    """A plot with its SVGs, each with its text alternative; panels of one title stand together."""

    caption: str
    panels: tuple[tuple[str, ...], ...]
    legend: str | None
    grid: Grid


@dataclass(frozen=True, slots=True)
class Shown:
    """A part whose plots are drawn."""

    id: str
    title: str
    items: tuple[Drawn | Grid | str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A run."""

    id: str
    name: str
    parts: tuple[Shown, ...]
    browser: Browser


def section(number: int, name: str, parts: Sequence[Part], browser: Browser) -> Section:
    """Draw the plots of a run."""
    name_id = f"run-{number}"
    shown = tuple(
        Shown(f"{name_id}-{place}", part.title, tuple(_item(item, f"{name_id}-{place}") for item in part.items))
        for place, part in enumerate(parts)
    )
    return Section(name_id, name, shown, browser)


def _item(item: Item, prefix: str) -> Drawn | Grid | str:
    if not isinstance(item, Plot):
        return item
    together: list[list[str]] = []
    before = None
    for panel, svg in zip(item.panels, panels(item, prefix), strict=True):
        if panel.title != before:
            together.append([])
        before = panel.title
        together[-1].append(svg.replace("<svg ", f'<svg role="img" aria-label="{escape(described(panel))}" ', 1))
    return Drawn(item.caption, tuple(map(tuple, together)), legend(item, prefix), item.grid)


def page(title: str, lead: Sequence[str], sections: Sequence[Section]) -> str:
    """The page's text."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - of the extra `eval`

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _resource("page.js")
    colours = [f"--c{place}: {colour};" for place, colour in enumerate(LIGHT)]
    dark = [f"--c{place}: {colour};" for place, colour in enumerate(DARK)]
    return environment.from_string(_resource("page.html")).render(
        title=title,
        lead=lead,
        sections=sections,
        style=_resource("page.css"),
        light=" ".join(colours),
        dark=" ".join(dark),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii"),
        is_grid=lambda item: isinstance(item, Grid),
        is_text=lambda item: isinstance(item, str),
    )


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")
