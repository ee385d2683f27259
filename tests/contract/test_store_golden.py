"""Stores of earlier formats still open, and hold what they held."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ecphoryrag.store import open_store
from ecphoryrag.store.schema import FORMAT
from tests.golden.make_store import FOLDER, described, make
from tests.support.indexed_documents import ENCODER, EXTRACTOR

GOLDEN = sorted(FOLDER.glob("store-format-*.sqlite"))


def test_there_is_one_for_each_format() -> None:
    assert [file.name for file in GOLDEN] == [f"store-format-{number}.sqlite" for number in range(1, FORMAT + 1)]


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda file: file.stem)
def test_an_earlier_store_opens_and_holds_what_it_held(golden: Path, tmp_path: Path) -> None:
    path = tmp_path / "copy.ecphory"
    shutil.copy(golden, path)
    store = open_store(path, ENCODER.identity, EXTRACTOR, create=False)
    assert described(store) == json.loads(golden.with_suffix(".json").read_text(encoding="utf-8"))
    assert store.status().format == FORMAT
    store.close()


def test_a_store_made_today_holds_the_same(tmp_path: Path) -> None:
    expected = json.loads(GOLDEN[-1].with_suffix(".json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(make(tmp_path / "new.ecphory"))) == expected
