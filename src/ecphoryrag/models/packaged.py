"""Model files that installed packages ship, found without importing those packages and checked before use."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from ecphoryrag.errors import ModelNotAvailable


def packaged_file(package: str, relative: str, sha256: str, remedy: str) -> Path:
    """Path of a file inside an installed top-level package, after its SHA-256 was checked.

    ``remedy`` is the command that installs the right version; it ends every error. Raises ModelNotAvailable if the
    package or the file is missing, unreadable or not the expected one: vectors from another file would silently not
    be comparable with those in a store.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModelNotAvailable(f"the package {package} is not installed: run `{remedy}`")
    path = Path(spec.submodule_search_locations[0], relative)
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelNotAvailable(
            f"the package {package} lacks a readable {relative} ({error.strerror}): run `{remedy}`"
        ) from error
    if found != sha256:
        raise ModelNotAvailable(
            f"{path} is not the expected file (its SHA-256 is {found}, not {sha256}): run `{remedy} --force-reinstall`"
        )
    return path


def encodable(text: str) -> str:
    """The text with lone surrogates, which no tokenizer takes, replaced by U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
