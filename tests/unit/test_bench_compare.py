"""Two methods question by question."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ecphoryrag.errors import InputError
from ecphoryrag.evaluation.bench.compare import compare, paired_t_test, side
from ecphoryrag.evaluation.bench.rows import ROWS, CellRow, QuestionRow, RowFile


def write(
    run: Path,
    label: str,
    figures: dict[str, dict[str, float]],
    *,
    encoder: str = "static",
    dataset: str = "tiny",
    seed: int = 0,
    normalisation: str = "squad",
    data: str = "d",
) -> None:
    key = f"{label} {encoder} {dataset} {seed}"
    cell = CellRow(
        key,
        label,
        label,
        dataset,
        encoder,
        seed,
        "development",
        None,
        normalisation=normalisation,
        parts={"data": data},
    )
    with RowFile(run / ROWS) as file:
        file.append(cell)
        for name, values in figures.items():
            file.append(QuestionRow(key, name, ("g",), (), values))


def many(*values: float) -> dict[str, dict[str, float]]:
    return {f"q{number}": {"em": value} for number, value in enumerate(values)}


def test_a_comparison_by_hand(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write(run, "a", many(1, 1, 1, 0))
    write(run, "b", many(0, 1, 0, 0))
    (found,) = compare(f"{run}:a", f"{run}:b")
    em = found.figures["em"]
    assert (found.questions, em.first, em.second, em.interval.difference) == (4, 0.75, 0.25, 0.5)
    assert em.interval.low == 0.0
    assert em.interval.high == 1.0
    # differences 1, 0, 1, 0: mean 1/2, deviation sqrt(1/3), t = (1/2) / (sqrt(1/3) / 2) = sqrt(3); with three degrees
    # of freedom the two-sided p is 1 - (2/pi) (atan(t/sqrt 3) + (t/sqrt 3) / (1 + t^2/3)) = 1 - (2/pi) (pi/4 + 1/2)
    assert em.t == pytest.approx(math.sqrt(3))
    assert em.p == pytest.approx(1 - 2 / math.pi * (math.pi / 4 + 1 / 2))
    assert found.left_out == ()
    (turned,) = compare(f"{run}:b", f"{run}:a")
    assert turned.figures["em"].interval.difference == -0.5


def test_questions_and_figures_of_one_side_alone_are_left_out_and_said(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write(one, "a", {"q1": {"em": 1.0, "f1": 1.0}, "q2": {"em": 0.0, "f1": 0.5}, "q9": {"em": 0.0, "f1": 0.0}})
    write(other, "a", {"q2": {"em": 0.0, "mrr": 1.0}, "q1": {"em": 1.0, "mrr": 0.0}}, data="e")
    (found,) = compare(str(one), str(other))
    assert found.questions == 2
    assert list(found.figures) == ["em"]
    interval = found.figures["em"].interval
    assert (interval.low, interval.high) == (0.0, 0.0)  # paired by question, not by place
    assert found.left_out == (
        "1 questions that only a, static was asked",
        "the two sides were not asked of the same data: compare with care",
        "figures that only one side has: f1, mrr",
    )


def test_answers_normalised_differently_do_not_compare(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write(one, "a", {"q1": {"em": 1.0, "recall@5": 1.0}})
    write(other, "a", {"q1": {"em": 1.0, "recall@5": 0.0}}, normalisation="loose")
    (found,) = compare(str(one), str(other))
    assert list(found.figures) == ["recall@5"]
    assert found.left_out == ("em and f1: answers normalised as squad and loose",)


def test_a_question_of_several_seeds_counts_once(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write(run, "a", {"q1": {"em": 1.0}, "q2": {"em": 1.0}}, seed=0)
    write(run, "a", {"q1": {"em": 0.0}}, seed=1)
    write(run, "b", {"q1": {"em": 0.0}, "q2": {"em": 0.0}})
    (found,) = compare(f"{run}:a", f"{run}:b")
    assert (found.questions, found.figures["em"].first) == (2, 0.75)


def test_which_cells_are_paired(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for encoder in ("static", "minilm"):
        for label in ("a", "b"):
            for dataset in ("x", "y"):
                write(run, label, many(1, 0), encoder=encoder, dataset=dataset)
    both = compare(str(run), str(run))
    assert [(each.dataset, each.first) for each in both] == [
        *(("x", "a, static"), ("y", "a, static"), ("x", "b, static"), ("y", "b, static")),
        *(("x", "a, minilm"), ("y", "a, minilm"), ("x", "b, minilm"), ("y", "b, minilm")),
    ]
    labelled = compare(f"{run}:a", f"{run}:b")
    assert [(each.first, each.second) for each in labelled] == [
        *[("a, static", "b, static")] * 2,
        *[("a, minilm", "b, minilm")] * 2,
    ]
    across = compare(f"{run}:a@minilm", f"{run}:a@static")
    assert [(each.dataset, each.first, each.second) for each in across] == [
        ("x", "a, minilm", "a, static"),
        ("y", "a, minilm", "a, static"),
    ]


def test_nothing_to_compare_says_what_there_is(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write(run, "a", many(1))
    with pytest.raises(InputError, match=r"run:z has no rows of that.*has a \(static, tiny\)|a \(static, tiny\)"):
        compare(f"{run}:a", f"{run}:z")
    with pytest.raises(InputError, match="is no run"):
        compare(str(tmp_path), str(run))
    with pytest.raises(InputError, match="is no run"):
        side(f"{tmp_path}/gone:a")
    found = side(f"{run}:paper[k=2]@static")
    assert (found.run, found.label, found.encoder) == (run, "paper[k=2]", "static")
    assert found.shown == f"{run}:paper[k=2]@static"


def test_a_t_test_that_there_is_none_of() -> None:
    assert paired_t_test([1.0], [0.0]) == (None, None)
    assert paired_t_test([1.0, 0.0], [1.0, 0.0]) == (None, None)
    assert paired_t_test([1.0, 0.5], [0.5, 0.0]) == (None, None)
