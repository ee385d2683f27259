"""Where the local language model's file is: the one configured, or the default one in the cache folder."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from ecphoryrag.errors import ModelFetchError, ModelNotAvailable
from ecphoryrag.settings.models import LocalModelSettings

MODEL_NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m"
MODEL_BYTES = 1_117_320_768
MODEL_SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
FETCH_COMMAND = "ecphory model fetch"


@dataclass(frozen=True, slots=True)
class Verified:
    """A file whose checksum was found right, told from a later one at its path by size and time of change."""

    sha256: str
    size: int
    mtime_ns: int


def cache_folder(settings: LocalModelSettings) -> Path:
    """The folder of fetched models: the configured one, or ``ecphoryrag`` in the user's cache folder."""
    if settings.cache is not None:
        return settings.cache.expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "ecphoryrag")


def default_model(settings: LocalModelSettings) -> Path:
    """Where the default model is, or would be once fetched."""
    return cache_folder(settings) / f"{MODEL_NAME}.gguf"


def resolve_model(settings: LocalModelSettings) -> Path:
    """The model file to load. Raises ModelNotAvailable if it is missing, ModelFetchError if the default one is damaged.

    The default model's checksum is computed when it is first used and remembered beside it; a file that the settings
    name is the user's own and is not checked.
    """
    if settings.path is not None:
        path = settings.path.expanduser()
        if not path.is_file():
            raise ModelNotAvailable(
                f"there is no model file at {path}: set models.local.path to a GGUF file, "
                f"or leave it empty and run `{FETCH_COMMAND}`"
            )
        return path
    path = default_model(settings)
    if not path.is_file():
        raise ModelNotAvailable(
            f"no language model is there yet: run `{FETCH_COMMAND}` (1.1 GB, once), or set models.local.path to a "
            "GGUF file of your own, or generator to none to be given evidence only"
        )
    if not is_verified(path):
        verify(path)
    return path


def is_verified(path: Path) -> bool:
    """Whether this very file was found right before, by the record beside it."""
    try:
        record = json.loads(_record(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(record == asdict(_state(path)))


def verify(path: Path) -> None:
    """Check size and SHA-256 of the default model (seconds), and remember that they are right.

    Raises ModelFetchError if they are not.
    """
    state = _state(path)
    if state.size != MODEL_BYTES:
        raise ModelFetchError(_damaged(path, f"it has {state.size} bytes, not {MODEL_BYTES}"))
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != MODEL_SHA256:
        raise ModelFetchError(_damaged(path, f"its SHA-256 is {found}, not {MODEL_SHA256}"))
    try:
        _record(path).write_text(json.dumps(asdict(state)), encoding="utf-8")
    except PermissionError:
        return  # a cache shared read-only: the check is then made at each load


def _state(path: Path) -> Verified:
    stat = path.stat()
    return Verified(MODEL_SHA256, stat.st_size, stat.st_mtime_ns)


def _record(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _damaged(path: Path, what: str) -> str:
    return f"the model file {path} is damaged ({what}): delete it and run `{FETCH_COMMAND}`"
