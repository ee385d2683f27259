from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ecphoryrag.store.cachefile import Arrays, pack_strings, read_cache, unpack_strings, write_cache

ARRAYS: Arrays = {
    "a": np.arange(6, dtype=np.int32).reshape(2, 3),
    "empty": np.zeros((0, 4), np.float16),
    "b": np.ones(1),
}


def test_arrays_come_back_under_their_stamp_only(tmp_path: Path) -> None:
    path = tmp_path / "x-cache"
    assert write_cache(path, "one", ARRAYS)
    found = read_cache(path, "one")
    assert found is not None
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
    assert read_cache(path, "two") is None
    assert read_cache(tmp_path / "absent", "one") is None
    assert [file.name for file in tmp_path.iterdir()] == ["x-cache"]


def test_contents_under_anothers_name_are_noticed(tmp_path: Path) -> None:
    """The header lies outside the bytes of the arrays, and is checked all the same."""
    path = tmp_path / "x-cache"
    write_cache(path, "one", {"left": np.zeros(2), "late": np.ones(2)})
    swapped = (
        path.read_bytes().replace(b'"left"', b'"mine"').replace(b'"late"', b'"left"').replace(b'"mine"', b'"late"')
    )
    path.write_bytes(swapped)
    assert read_cache(path, "one") is None


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x-cache"
    write_cache(path, "one", ARRAYS)

    def fail(self: Path, target: Path) -> Path:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    assert not write_cache(path, "two", ARRAYS)
    assert read_cache(path, "one") is not None
    assert [file.name for file in tmp_path.iterdir()] == ["x-cache"]


@pytest.mark.parametrize("strings", [[], [""], ["a", "", "東京", "\x00", "e\u0301"], ["😀" * 3, "b"]])
def test_strings_come_back(strings: list[str]) -> None:
    assert unpack_strings(*pack_strings(strings)) == strings
