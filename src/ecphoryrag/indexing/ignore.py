"""Which files git would leave out."""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeAlias

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from ecphoryrag.errors import InputError
from ecphoryrag.indexing.files import open_regular, read_bounded, shown
from ecphoryrag.types import Failure

MOST_BYTES, MOST_CHARACTERS, MOST_FOLDERS = 2**20, 1000, 3
"""Of a file of rules, of one rule, and of ``/**/`` in it: all are far above what people write."""


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
        with open_regular(file) as opened:
            text = read_bounded(opened, MOST_BYTES).decode("utf-8-sig", "surrogateescape")
    except InputError as error:
        return (), [Failure(shown(file), f"its rules do not apply: {error}")]
    patterns: list[str] = []
    compiled: list[GitIgnoreSpecPattern] = []
    failures: list[Failure] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            compiled.append(_compiled(line))
        except (ValueError, re.error) as error:  # the second of a range from z to a
            why = f": {error}" if isinstance(error, InputError) else ""
            failures.append(Failure(f"{shown(file)}:{number}", f"not a valid git-ignore pattern{why}: {line[:100]}"))
        else:
            patterns.append(line)
    if not patterns:
        return (), failures
    return (Rules(base, shown(file), tuple(patterns), GitIgnoreSpec(compiled)),), failures


_STAR, _STARS = "[^/]*", "(?:/.+)?/"
"""What pathspec makes of ``*`` and of ``/**/``."""


def _compiled(line: str) -> GitIgnoreSpecPattern:
    """The pattern of one line, so written that it is matched in a time that grows with the path, not with its power.

    Raises ValueError, re.error, and _TooSlow for a pattern that cannot be.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of brackets in brackets, which mean to git what they mean here
        pattern = GitIgnoreSpecPattern(line)
    if pattern.regex is None:
        return pattern
    expression = pattern.regex.pattern
    if len(line) > MOST_CHARACTERS or expression.count(_STARS) > MOST_FOLDERS:
        raise _TooSlow(f"more than {MOST_CHARACTERS} characters or {MOST_FOLDERS} times /**/")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        pattern.regex = re.compile(_linear(expression))
    return pattern


def _linear(expression: str) -> str:
    """The same expression without going back to an earlier ``*`` of a name, which never helps.

    What stands between two stars has a fixed length, so its first occurrence leaves most to what follows; only the
    last star of a name must try them all.
    """
    first, *pieces = re.sub(r"(?:\[\^/\]\*){2,}", lambda _: _STAR, expression).split(_STAR)
    made = [first]
    for at, piece in enumerate(pieces):
        last = at == len(pieces) - 1 or not piece or "(" in piece.replace("\\(", "") or "/" in piece
        made.append(f"{_STAR}{piece}" if last else f"(?>[^/]*?{piece})")
    return "".join(made)


class _TooSlow(InputError, ValueError):
    """A pattern that would take too long on some path."""
