"""Which files git would leave out."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeAlias

from pathspec import GitIgnoreSpec

from ecphoryrag.indexing.files import shown
from ecphoryrag.types import Failure


@dataclass(frozen=True, slots=True)
class Rules:
    """The patterns of one file, which count from the folder ``base`` down."""

    base: str
    file: str
    patterns: tuple[str, ...]
    spec: GitIgnoreSpec


RuleChain: TypeAlias = tuple[Rules, ...]
"""Outermost folder first; the last that decides wins."""


def ignoring(chain: RuleChain, path: str, *, folder: bool) -> str | None:
    """The pattern, and its file, by which git leaves out the path; None if it does not."""
    for rules in reversed(chain):
        relative = PurePath(path).relative_to(rules.base).as_posix() + ("/" if folder else "")
        result = rules.spec.check_file(relative)
        if result.include is not None and result.index is not None:
            return f"{rules.patterns[result.index]} in {rules.file}" if result.include else None
    return None


def rules_in(folder: str) -> tuple[RuleChain, list[Failure]]:
    """The rules of the folder's own ``.gitignore``, if it has one, and what of it could not be read."""
    return _read(Path(folder) / ".gitignore", folder)


def rules_above(folder: str) -> tuple[RuleChain, list[Failure]]:
    """The rules of the folders above, up to the root of the repository that the folder is in, if it is in one.

    If the folder itself is ignored they say nothing about what is in it: whoever names it wants it.
    """
    root = _repository(folder)
    if root is None:
        return (), []
    chain, failures = _read(Path(root) / ".git" / "info" / "exclude", root)
    for above in reversed(Path(folder).parents):
        if above.is_relative_to(root):
            own, failed = rules_in(str(above))
            chain, failures = chain + own, failures + failed
    return ((), failures) if ignoring(chain, folder, folder=True) else (chain, failures)


def _repository(folder: str) -> str | None:
    path = Path(folder)
    return next((str(at) for at in (path, *path.parents) if os.path.lexists(at / ".git")), None)


def _read(file: Path, base: str) -> tuple[RuleChain, list[Failure]]:
    # git does not follow a linked .gitignore either.
    if not file.is_file() or file.is_symlink():
        return (), []
    try:
        lines = file.read_text(encoding="utf-8-sig", errors="surrogateescape").split("\n")
    except OSError as error:
        return (), [Failure(shown(file), f"cannot be read, so its rules do not apply: {error.strerror}")]
    patterns: list[str] = []
    failures: list[Failure] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            GitIgnoreSpec.from_lines([line])
        except (ValueError, re.error):  # the second of a range from z to a
            failures.append(Failure(f"{shown(file)}:{number}", f"not a valid git-ignore pattern: {line}"))
        else:
            patterns.append(line)
    if not patterns:
        return (), failures
    return (Rules(base, shown(file), tuple(patterns), GitIgnoreSpec.from_lines(patterns)),), failures
