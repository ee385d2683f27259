"""Normalised names, on examples."""

from __future__ import annotations

import pytest

from ecphoryrag.text.keys import is_linkable, name_key, normal_words

KEYS = {
    "Polish-Russian War (film)": "polish russian war",
    "The Beatles": "beatles",
    "A Tribe Called Quest": "tribe called quest",
    "The The": "the",
    "The": "the",
    "A. A. Milne": "aa milne",
    "J.R.R. Tolkien": "jrr tolkien",
    "J. R. R. Tolkien": "jrr tolkien",
    "U.S.": "us",
    "Arthur's Magazine": "arthur magazine",
    "Arthur’s Magazine": "arthur magazine",
    "O'Brien": "o brien",
    "(500) Days of Summer": "500 days of summer",
    "Ca(OH)2": "ca oh 2",
    "Foo (bar (baz))": "foo",
    "Foo (bar": "foo bar",
    "机动战士（动画）": "机 动 战 士",
    "!!!": "!!!",
    "㈱": "株",
    "½ Mensch": "1 2 mensch",
    "Ｆｕｌｌ": "full",
    "ﬁlm": "film",
    "STRAẞE": "strasse",
    "snake_case": "snake case",
    "e\u0301tude": "étude",
    "हिन्दी विश्वविद्यालय": "हिन्दी विश्वविद्यालय",
    "กรุง": "ก รุ ง",
    "北京大学": "北 京 大 学",
    "서울": "서 울",
    "\u1109\u1165\u110b\u116e\u11af": "서 울",
    "القاهرة": "قاهره",
    "والقاهِرة": "قاهره",
    "\u200bx\u200dy": "xy",
    "": "",
    " \n": "",
}


@pytest.mark.parametrize(("name", "key"), KEYS.items())
def test_key(name: str, key: str) -> None:
    assert name_key(name) == key


def test_offsets_are_those_of_the_original_though_folding_changes_lengths() -> None:
    text = "Die STRAẞE, ﬁne — ½ of İzmir's"
    found = {word.norm: text[word.start : word.end] for word in normal_words(text)}
    assert found["strasse"] == "STRAẞE"
    assert found["fine"] == "ﬁne"
    assert found["1"] == found["2"] == "½"
    assert "İzmir" in found.values()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Polish-Russian War (film)", "He directed Polish Russian War in 2009."),
        ("北京大学", "他在北京大学读书"),
        ("서울", "나는 서울에서 산다"),
        ("القاهرة", "ذهبت إلى القاهرة"),
        ("J. R. R. Tolkien", "written by J.R.R. Tolkien."),
    ],
)
def test_a_name_is_found_in_running_text_as_consecutive_words(name: str, text: str) -> None:
    norms = f" {' '.join(word.norm for word in normal_words(text))} "
    assert f" {name_key(name)} " in norms


@pytest.mark.parametrize(
    ("key", "linkable"), [("us", False), ("mary", True), ("北 京", True), ("北", False), ("ab c", False)]
)
def test_short_keys_are_not_looked_for_in_text(key: str, linkable: bool) -> None:
    assert is_linkable(key) is linkable
