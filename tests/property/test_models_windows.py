"""Windows of a long text hold all of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ecphoryrag.models.windows import joined, windows


@given(st.text(min_size=1, max_size=200), st.integers(1, 12))
def test_they_are_the_text_in_parts_of_about_one_length(text: str, count: int) -> None:
    parts = windows(text, count)
    assert "".join(parts) == text
    assert 1 <= len(parts) <= count
    assert all(parts)
    assert max(map(len, parts)) <= 1.25 * len(text) / count + 1 or len(parts) < count


@given(st.text(min_size=2, max_size=200))
def test_two_are_shorter_than_the_whole(text: str) -> None:
    """Else a text that is refused would be sent for ever."""
    assert all(len(part) < len(text) for part in windows(text, 2))


def test_cuts_fall_between_words() -> None:
    assert windows("one two three four five six", 2) == ["one two three ", "four five six"]
    assert windows("東" * 9, 3) == ["東" * 3] * 3


def test_the_mean_is_weighed_by_length() -> None:
    vectors = np.eye(2, dtype=np.float32)
    np.testing.assert_allclose(joined(vectors, ["abc", "d"]), [[0.75, 0.25]])
