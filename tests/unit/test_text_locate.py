"""Where names stand: exactly, loosely, and not at all."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ecphoryrag.text.locate import Located


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("Ada met Ada's aunt, Adams and Ada.", "Ada", ["Ada", "Ada", "Ada"]),
        ("He met ada  lovelace.", "Ada Lovelace", ["ada  lovelace"]),
        ("He met Ada\nLovelace.", "Ada Lovelace", ["Ada\nLovelace"]),
        ("Ada Lovelace, ADA LOVELACE", "Ada Lovelace", ["Ada Lovelace"]),
        ("The ﬁlm is by Ａｄａ.", "film", ["ﬁlm"]),
        ("The ﬁlm is by Ａｄａ.", "Ada", ["Ａｄａ"]),
        ("In the Rue de l’Odéon", "l'Odéon", ["l’Odéon"]),
        ("In the Rue de l'Ode\u0301on", "l'Odéon", ["l'Ode\u0301on"]),
        ("a Cafe\u0301 there", "Cafe", []),
        ("The “Night Heron” sailed", '"Night Heron"', ["“Night Heron”"]),
        ("World War II (1939–1945)", "1939-1945", ["1939–1945"]),
        ("foot\u00adnotes", "footnotes", ["foot\u00adnotes"]),
        ("½ Moon", "1", []),
        ("½ Moon", "½ Moon", ["½ Moon"]),
        ("½ moon", "½ Moon", ["½ moon"]),
        ("He likes C++ and C.", "C++", ["C++"]),
        ("set max_tokens first", "max", []),
        ("Newton, Newtonian", "Newton", ["Newton"]),
        ("蔡元培是北京大学的校长。", "北京大学", ["北京大学"]),
        ("アレクサンダー大王", "アレクサンダー", ["アレクサンダー"]),
        ("세종대왕은 한글을", "세종대왕", ["세종대왕"]),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글", ["\u1112\u1161\u11ab\u1100\u1173\u11af"]),
        ("กรุงเทพมหานครเป็นเมืองหลวง", "กรุงเทพมหานคร", ["กรุงเทพมหานคร"]),
        ("महात्मा गांधी का", "महात्मा", ["महात्मा"]),
        ("महात्मा गांधी का", "महात्म", []),
        ("ที่นี่", "ท", []),
        ("foot\u00adnotes", "foot", []),
        ("STRASSE", "Straße", ["STRASSE"]),
        ("aaa aa a", "aa", ["aa"]),
        ("text", "", []),
        ("a  b", "  ", []),
        ("", "Ada", []),
        ("Ada", "Bo", []),
    ],
)
def test_places(text: str, name: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in Located(text).find(name)] == found


words = st.text(st.sampled_from("abAB éﬁ½'’-–北京한\u0301\u00ad \n"), max_size=6)


@given(words, words, words)
def test_places_are_in_order_apart_and_inside(before: str, name: str, after: str) -> None:
    text = f"{before} {name} {after}{name}"
    places = Located(text).find(name)
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert all(one[1] <= other[0] for one, other in pairwise(places))
    if name.strip() == name and name and name[0].isalnum() and name[-1].isalnum() and after[:1] != "\u0301":
        assert (len(before) + 1, len(before) + 1 + len(name)) in places
