from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from ecphoryrag.store import linking
from ecphoryrag.store.linking import find_linked, word_hashes


def find(names: dict[int, str], texts: list[str], mentioned: set[tuple[int, int]] | None = None) -> list[list[int]]:
    def known(found: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.array([tuple(pair) in (mentioned or set()) for pair in found.tolist()], np.bool_)

    def read(positions: Iterable[int]) -> Iterator[tuple[int, str]]:
        return ((position, texts[position]) for position in positions)

    found: list[list[int]] = find_linked(names, [word_hashes(text).tobytes() for text in texts], known, read).tolist()
    return found


def test_a_name_is_found_as_whole_words_however_written() -> None:
    texts = [
        "by the SILENT harbour.",
        "the silent harbours",
        "Harbour, silent",
        "silent",
        "harbour",
        "Silent-Harbour's",
    ]
    assert find({7: "silent harbour"}, texts) == [[0, 7], [5, 7]]


def test_a_name_does_not_run_over_the_end_of_a_chunk() -> None:
    assert find({0: "silent harbour"}, ["so silent", "harbour of", "", "silent harbour"]) == [[3, 0]]


def test_names_within_names_are_all_found() -> None:
    names = {0: "new york", 1: "new york city", 2: "york city council", 3: "a b"}
    assert find(names, ["New York City Council, a b"]) == [[0, 0], [0, 1], [0, 2]]


def test_what_is_mentioned_already_is_not_linked() -> None:
    assert find({0: "silent harbour", 1: "old town"}, ["old town, silent harbour"] * 2, {(0, 1)}) == [
        [0, 0],
        [1, 0],
        [1, 1],
    ]


def test_names_of_one_word_or_of_very_many_are_left_out() -> None:
    long = " ".join(f"word{at}" for at in range(linking.MOST_WORDS + 1))
    assert find({0: "harbour", 1: long, 2: long.rpartition(" ")[0]}, [f"harbour {long}"]) == [[0, 2]]


def test_signs_of_scripts_without_spaces_count_as_words() -> None:
    assert find({0: "東 京"}, ["ここは東京です", "京東"]) == [[0, 0]]


@pytest.mark.parametrize("hashed", [0, 1])
def test_a_collision_of_hashes_makes_no_link_and_loses_none(monkeypatch: pytest.MonkeyPatch, hashed: int) -> None:
    monkeypatch.setattr(zlib, "crc32", lambda _: hashed)
    assert find({0: "silent harbour", 1: "old town"}, ["old town", "other words", "silent harbour"]) == [[0, 1], [2, 0]]


def test_blocks_are_numbered_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "_BLOCK", 2)
    assert find({0: "old town"}, ["old", "town", "x", "", "old town"]) == [[4, 0]]
