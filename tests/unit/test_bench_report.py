"""The report of stored runs: what it marks, says, draws and escapes, and that it is the same when built again."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.bench.reporting import BEGIN, END, read_run, write_report
from ecphoryrag.evaluation.bench.reporting.browse import browser
from ecphoryrag.evaluation.bench.reporting.curves import by_k, context, cost, depth
from ecphoryrag.evaluation.bench.reporting.markdown import escaped
from ecphoryrag.evaluation.bench.reporting.numbers import marks
from ecphoryrag.evaluation.bench.reporting.parts import Grid, Plot
from ecphoryrag.evaluation.bench.reporting.tables import table_1, table_2
from ecphoryrag.evaluation.bench.reporting.words import does_not_say, says
from tests.support.bench_report import (
    HOSTILE,
    HOSTILE_LABEL,
    ablation_run,
    answered_run,
    cell,
    question,
    write_run,
)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return answered_run(tmp_path_factory.mktemp("answered"))


@pytest.fixture(scope="module")
def ablation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ablation_run(tmp_path_factory.mktemp("ablation"))


@pytest.fixture(scope="module")
def page(answered: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page")
    write_report([answered], out, docs=out / "docs.md")
    return (out / "report.html").read_text("utf-8")


def grid_of(items: object) -> Grid:
    assert isinstance(items, tuple)
    return next(item for item in items if isinstance(item, Grid))


def plot_of(items: object) -> Plot:
    assert isinstance(items, tuple)
    return next(item for item in items if isinstance(item, Plot))


class Tags(HTMLParser):
    """Every tag with its attributes, and which are open when the page ends."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags(text: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(text)
    parser.close()
    return parser.tags


def test_the_best_and_the_second_of_table_1_by_hand(answered: Path) -> None:
    grid = grid_of(table_1(read_run(answered).table).items)
    assert grid.header[:5] == ("method", "EM", "F1", "recall@5", "all gold@5")
    found = {row[0].text: [(cell.text, cell.mark) for cell in row[1:5]] for row in grid.rows}
    # EM 1 1 1 0: mean 3/4, standard error of the mean 1/4; F1 1 1 1 .5: 7/8 and 1/8
    assert found["ecphory"][:2] == [("75.0 (± 25.0)", "best"), ("87.5 (± 12.5)", "best")]
    assert [mark for _, mark in found["ecphory"][2:]] == ["second", "second"]
    for label in ("dense", HOSTILE_LABEL):
        assert [mark for _, mark in found[label]] == ["second", "second", "best", "best"]
    assert [row[5].text for row in grid.rows] == ["0", "0", "0"]
    assert [row[6].text for row in grid.rows] == ["100", "100", "1,000"]
    assert [row[7].text for row in grid.rows] == ["400"] * 3


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, 1.0, 2.0], ["best", "", "second"]),
        ([2.04, 2.01, 1.0, 1.0, 0.5], ["best", "best", "second", "second", ""]),  # as shown: 2.0 and 2.0
        ([None, 1.0, 2.0], ["", "second", "best"]),
        ([1.0, 1.0], ["", ""]),
        ([1.0], [""]),
        ([], []),
    ],
)
def test_marks(values: list[float | None], expected: list[str]) -> None:
    assert marks(values) == expected


def test_several_seeds_show_their_deviation_and_an_unfinished_method_is_not_marked(tmp_path: Path) -> None:
    first, second, late = cell("a", seed=0), cell("a", seed=1), cell("b")
    rows = [question(first, "q1", 1, 1), question(second, "q2", 0, 1), question(late, "q1", 1, 1)]
    grid = grid_of(table_1(read_run(write_run(tmp_path, [first, second, late], rows)).table).items)
    assert grid.rows[0][1].text == "50.0 ± 70.7"  # of 1 and 0 with n - 1: sqrt(1/2)
    assert grid.rows[1][1].mark == ""  # 100, of one question
    assert [row[-2].text for row in grid.rows] == ["2 (2 seeds)", "1, unfinished"]


def test_table_2_and_its_curves_have_both_readings(ablation: Path) -> None:
    rows = read_run(ablation).table
    grid = grid_of(table_2(rows).items)
    assert [row[0].text for row in grid.rows] == [
        "all entities, depth 0",
        "all entities, depth 1",
        "entities of the last round, depth 0",
        "entities of the last round, depth 1",
    ]
    assert grid.header[1:8] == ("EM", "F1", "recall@5", "all gold@5", "entities", "passages", "context tokens")
    assert [row[5].text for row in grid.rows] == ["20.0", "22.0", "21.0", "23.0"]
    assert not any(cell.mark for row in grid.rows for cell in row)
    plot = plot_of(depth(rows).items)
    entities = next(panel for panel in plot.panels if panel.y == "entities")
    assert {line.label: [(point.x, point.y) for point in line.points] for line in entities.series} == {
        "seeds of all entities": [(0, 20), (1, 22)],
        "seeds of entities of the last round": [(0, 21), (1, 23)],
    }


def test_figures_4_and_5_against_k(ablation: Path) -> None:
    rows = [row for row in read_run(ablation).table if "depth" not in row.label]
    four = plot_of(context(rows).items)
    assert four.labels == ("both", "chunks only", "entities only")
    assert [[point.x for point in line.points] for line in four.panels[0].series] == [[2, 5]] * 3
    assert "Both shows k chunks and 20 entities" in four.caption
    five = plot_of(by_k(rows).items)
    assert five.labels == ("tiny", "other")
    assert [(panel.title, panel.y) for panel in five.panels][:2] == [
        ("shown[context=both], static", "EM"),
        ("shown[context=both], static", "F1"),
    ]


def test_parts_without_data_say_so(tmp_path: Path) -> None:
    only = cell("dense", generator=None)
    run = read_run(write_run(tmp_path, [only], [question(only, "q1", None, 0.5)], texts=False, manifest=False))
    for part in (table_2(run.table), depth(run.table), context(run.table), by_k(run.table)):
        assert len(part.items) == 1, part.title
        assert "does not vary" in str(part.items[0])
    assert plot_of(cost(run.table).items).panels[0].y == "recall@5"
    write_report([tmp_path], tmp_path)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "no manifest" in text
    (asked,) = data_of(text)["questions"]
    assert (asked[1], asked[2], asked[3]) == ("q1", "", [])  # the page then shows the id


def test_an_empty_run_is_reported_and_a_folder_without_one_is_not(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [], [], texts=False)
    write_report([tmp_path / "run"], tmp_path / "out")
    assert "no rows yet" in (tmp_path / "out" / "report.md").read_text("utf-8")
    with pytest.raises(InputError, match=r"is no run: it has no rows\.jsonl"):
        write_report([tmp_path], tmp_path / "out")


def test_the_same_run_gives_the_same_bytes_whatever_the_users_settings_are(
    ablation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_report([ablation], tmp_path / "one", docs=tmp_path / "one.md")
    with mpl.rc_context({"font.size": 31, "svg.fonttype": "path", "axes.linewidth": 7, "ytick.major.size": 20}):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
        again = write_report([ablation], tmp_path / "two", docs=tmp_path / "two.md")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert [path.name for path in first] == ["report.md", "report.html", "one.md"]


def data_of(text: str) -> dict[str, Any]:
    """What the page holds for its script, of the first run."""
    found = re.search(r'<script type="application/json" class="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_nothing_of_a_document_becomes_a_part_of_the_page(page: str) -> None:
    found = tags(page)
    active = [
        (name, of.get("type")) for name, of in found if name in ("script", "img", "iframe", "link", "base", "object")
    ]
    assert active == [("script", "application/json"), ("script", None)]
    assert not any(name.startswith("on") for _, attributes in found for name in attributes)
    assert HOSTILE not in page
    assert "{{ 7 * 7 }}" in page  # of the texts, not computed
    assert "(1)&lt;b&gt;|`x`&lt;/b&gt;$" in page


def test_the_page_needs_nothing_beside_itself(page: str) -> None:
    for name, attributes in tags(page):
        for attribute, value in attributes.items():
            if attribute in ("src", "href", "xlink:href", "action", "srcset"):
                assert value is not None
                assert value.startswith("#"), (name, value)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)


def test_ids_are_there_once_and_every_link_leads_to_one(page: str) -> None:
    found = tags(page)
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes.get("href") or attributes.get("xlink:href") for _, attributes in found]
    links += [f"#{name}" for name in re.findall(r"url\(#([^)]*)\)", page)]
    assert {link for link in links if link} <= {f"#{name}" for name in ids}


def test_every_plot_has_words_and_no_date(page: str) -> None:
    pictures = [attributes for name, attributes in tags(page) if name == "svg" and "role" in attributes]
    assert len(pictures) == 3
    assert all("F1 against" in (attributes["aria-label"] or "") for attributes in pictures)
    assert "dc:date" not in page
    assert "var(--c0, #0072b2)" in page
    assert "currentColor" in page
    assert "#123456" not in page


def test_the_browser_shows_what_came_back_and_what_was_missed(answered: Path) -> None:
    shown = browser(read_run(answered))
    assert shown.columns == ("ecphory", "dense", HOSTILE_LABEL)
    titles = [passage.title for passage in shown.documents]
    second = shown.questions[1]
    assert second.results == "212"
    ecphory = second.tried[0]
    assert [titles[place] for place in ecphory.retrieved] == [titles[place] for place in ecphory.shown]
    assert [titles[place] for place in ecphory.retrieved] == ["Gold One", HOSTILE]
    assert (ecphory.entities, ecphory.cited) == (("orla",), (1,))
    assert [titles[place] for place in second.gold] == ["Gold One", "Gold Two"]
    assert all(passage.text.startswith("Text of") for passage in shown.documents)


def test_the_page_holds_the_questions_as_they_are(answered: Path, page: str) -> None:
    shown, data = browser(read_run(answered)), data_of(page)
    assert data["columns"] == list(shown.columns)
    assert [title for title, _ in data["documents"]] == [passage.title for passage in shown.documents]
    assert data["questions"][1][2] == f"Question q1? {HOSTILE}"
    assert data["questions"][1][7][0][:4] == [0, "right", "F1 100, recall@5 50", "<b>Brida</b> Sollas"]


def test_a_page_is_bounded_and_says_what_it_leaves_out(answered: Path, ablation: Path) -> None:
    run = read_run(answered)
    gold_alone = sum(len(passage.text) for passage in browser(run).documents[:3]) - 1
    shown = browser(run, passages=gold_alone)
    assert [bool(passage.text) for passage in shown.documents] == [True, True, False]  # gold before all others
    assert (shown.without_text, shown.left_out) == (1, 0)
    few = browser(read_run(ablation), questions=5)
    assert [few.datasets[asked.dataset] for asked in few.questions] == ["tiny"] * 2 + ["other"] * 3
    assert few.left_out == 3


def test_lone_surrogates_do_not_spoil_the_page(tmp_path: Path) -> None:
    only = cell("dense")
    row = replace(question(only, "q1", 1, 1), answer="\ud800 </script>")
    write_report([write_run(tmp_path, [only], [row])], tmp_path)
    text = (tmp_path / "report.html").read_text("utf-8")
    assert data_of(text)["questions"][0][7][0][3] == "\ud800 </script>"


def test_what_it_says_is_computed(answered: Path) -> None:
    run = read_run(answered)
    listed, grid = says(run).items
    assert listed == f"tiny, static: EM of 4 questions: ecphory 75.0, dense 50.0, {HOSTILE_LABEL} 50.0."
    assert isinstance(grid, Grid)
    assert [cell.text for cell in grid.rows[0]][2:5] == ["ecphory less dense", "EM", "+25.0"]
    assert grid.rows[0][-1].text == "not told apart"
    limits = "\n".join(map(str, does_not_say(run).items))
    assert "development questions" in limits
    assert "1 of the 1 differences" in limits
    assert "5 questions have no answer" in limits
    assert "Could not run: lightrag, static on tiny: no model" in limits


def test_methods_that_no_question_tells_apart_are_said_to_be_the_same(tmp_path: Path) -> None:
    one, two = cell("ecphory"), cell("dense")
    rows = [question(each, f"q{n}", 1, 1) for each in (one, two) for n in range(3)]
    run = read_run(write_run(tmp_path, [one, two], rows))
    assert "on each of the 3 questions EM is the same for dense and for ecphory." in str(says(run).items[1])
    assert not any(isinstance(item, Grid) for item in says(run).items)
    assert "differences above" not in "\n".join(map(str, does_not_say(run).items))


def test_the_documentation_keeps_what_stands_around_the_marks(answered: Path, tmp_path: Path) -> None:
    docs = tmp_path / "benchmarks.md"
    docs.write_text(f"# Ours\n\nWords.\n\n{BEGIN}\nbefore this\n{END}\n\nMore.\n", encoding="utf-8")
    write_report([answered], tmp_path, docs=docs)
    first = docs.read_text("utf-8")
    assert first.startswith(f"# Ours\n\nWords.\n\n{BEGIN}\n")
    assert first.endswith(f"{END}\n\nMore.\n")
    assert "before this" not in first
    assert f"## {answered.name}" in first
    assert "### Table 1" in first
    write_report([answered], tmp_path, docs=docs)
    assert docs.read_text("utf-8") == first
    docs.write_text(f"# Ours\n{BEGIN}\n", encoding="utf-8")  # no end: made anew as a whole
    write_report([answered], tmp_path, docs=docs)
    assert docs.read_text("utf-8").startswith("# Benchmarks")


def test_markdown_escapes() -> None:
    assert escaped("a|b *c* <b>\n`d` [e]") == r"a\|b \*c\* &lt;b&gt; \`d\` \[e\]"
