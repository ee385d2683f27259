"""Likely duplicates: spellings of one name are proposed with the reason, false friends are not."""

from __future__ import annotations

import random

import numpy as np
import pytest
import scipy.sparse as sp

from ecphoryrag.recall.duplicates import CROWD, LIKELY, Known, find_duplicates
from ecphoryrag.text.keys import name_key
from ecphoryrag.text.likeness import Form, likeness, marks
from ecphoryrag.types import Entity


def scored(one: str, other: str) -> tuple[float, str]:
    first, second = Form(name_key(one)), Form(name_key(other))
    found = likeness(first, second)
    assert likeness(second, first) == found
    if found is None:
        return 0.0, ""
    assert set(marks(first)) & set(marks(second)), "they would never be compared"
    return found.score, found.reason


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("École Bleue", "Ecole Bleue", "diacritics"),
        ("Sir Isaac Newton", "Isaac Newton", "a title before it"),
        ("Canadian Tire Corporation Ltd", "Canadian Tire", "form of a company"),
        ("Tri-Star Pictures", "TriStar Pictures", "spaces or hyphens"),
        ("J. R. R. Tolkien", "John Ronald Reuel Tolkien", "initials in the place"),
        ("John Q. Adams", "John Adams", "a middle name more"),
        ("Magdalen College", "Magdalene College", "one letter apart"),
    ],
)
def test_spellings_of_one_name_are_likely(one: str, other: str, reason: str) -> None:
    score, said = scored(one, other)
    assert reason in said
    assert score >= LIKELY


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("Pyotr Tchaikovsky", "Pyotr Chaykovskiy", "same consonants"),
        ("Organisation of African Unity", "OAU", "first letters"),
        ("John Quincy Adams", "John Adams", "a middle name more"),
    ],
)
def test_weaker_likeness_scores_less(one: str, other: str, reason: str) -> None:
    score, said = scored(one, other)
    assert reason in said
    assert 0 < score < LIKELY


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2014 Ford 400", "2015 Ford 400"),
        ("Henry VII", "Henry VIII"),
        ("Henry VIII", "Henry"),
        ("Second Punic War", "First Punic War"),
        ("Martin Luther King", "Martin Luther King Jr."),
        ("North Carolina", "South Carolina"),
        ("XXX Olympiad", "XXXIII Olympiad"),
        ("John Smith", "Joan Smith"),
        ("John Paul Smith", "John Mark Smith"),
        ("Ed Smith", "Eric Smith"),
        ("Mali", "Bali"),
        ("Duke of Parma", "Count of Parma"),
        ("Jaws 2", "Jaws"),
        ("Bank of England", "Bank of Ireland"),
        ("Ida", "Ida Moen"),
    ],
)
def test_false_friends_are_not_likely(one: str, other: str) -> None:
    assert scored(one, other)[0] < LIKELY


def known(names: list[str], aliases: list[tuple[int, int]] | None = None, kind: str = "name") -> Known:
    entities = [Entity(name_key(name), name, kind, "", 3, (name,), len(names) - at, 1) for at, name in enumerate(names)]
    documents = sp.csc_array(np.ones((1, len(names)), np.float32))
    return Known(entities, np.array(aliases or [], np.int32).reshape(-1, 2), documents, None)


def test_the_best_comes_first_with_all_its_reasons() -> None:
    found = find_duplicates(known(["Old Town", "École Bleue", "Ecole Bleue", "Oldtown", "Bleue"], [(1, 2)]), 0.0)
    assert [(one.one, one.other) for one in found[:2]] == [("École Bleue", "Ecole Bleue"), ("Old Town", "Oldtown")]
    assert found[0].reasons == (
        "the same but for diacritics, a title before it or the form of a company",
        "a text says that they are one",
    )


def test_dates_and_what_was_split_apart_are_not_proposed() -> None:
    assert find_duplicates(known(["École Bleue", "Ecole Bleue"], kind="date"), 0.0) == []
    entities = known(["Mercury", "Mercury"]).entities
    apart = [entities[0], Entity("mercury (planet)", "Mercury (planet)", "name", "", 3, ("Mercury",), 1, 1)]
    split = Known(apart, np.array([(0, 1)], np.int32), sp.csc_array(np.ones((1, 2), np.float32)), None)
    assert find_duplicates(split, 0.0) == []


def test_what_too_many_share_is_not_compared() -> None:
    crowd = [f"John {middle}{at:02d}x Smith" for at in range(CROWD + 1) for middle in ("q",)]
    assert find_duplicates(known([*crowd, "John Smith"]), 0.0) == []


def test_many_names_are_compared_in_any_order_alike_and_soon() -> None:
    draw = random.Random(1)
    syllables = ["ka", "lo", "mir", "ten", "sa", "vod", "ri", "pel", "un", "go"]
    names = list({" ".join("".join(draw.choices(syllables, k=3)).title() for _ in range(2)) for _ in range(4000)})
    names.sort()
    looked_at = sum(len(set(marks(Form(name_key(name))))) for name in names)
    assert looked_at < 30 * len(names)
    first = find_duplicates(known(names), 0.0)
    draw.shuffle(names)
    second = find_duplicates(known(names), 0.0)
    assert {frozenset((one.one_key, one.other_key)) for one in first} == {
        frozenset((one.one_key, one.other_key)) for one in second
    }
