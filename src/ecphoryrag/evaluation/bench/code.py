"""Which code made a row.

The rule: a change counts if it can change a row. So the code of a cell is a hash of the sources of the packages that
every method runs through (below), of the method's own module with all modules of its package that it imports, and of
the modules of the encoder, the extractor and, where it answers, the generator that it uses. Comments, docstrings and
layout do not count, nor do the command line, the report, other methods, tests and documents. It is read from the
files, so it holds in a working copy with changes and in an installed wheel alike. Two versions of Python may write one
source differently when they take it apart; then the hash differs too, which errs on the careful side.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import ecphoryrag
from ecphoryrag.evaluation.baselines.registry import PACKAGE, entry
from ecphoryrag.settings.models import split_name

RETRIEVAL = ("text", "recall", "indexing", "store", "memory.py", "snapshot.py", "vectors.py")
ANSWERING = ("answering", "calls")
MEASURING = (
    *("evaluation/datasets", "evaluation/answers.py", "evaluation/metrics.py"),
    *("evaluation/bench/ask.py", "evaluation/bench/models.py"),
)
SHOWN = 12
"""Digits of a hash that are kept: enough to tell states of one source apart."""


class Code:
    """The sources as they are now; each is read once."""

    def __init__(self) -> None:
        self._root = Path(ecphoryrag.__file__).parent
        self._plain: dict[Path, str] = {}

    def of(self, method: str, encoder: str, extractor: str, generator: str | None) -> str:
        """The first 12 hexadecimal digits of the hash for a cell; ``generator`` is None if nothing is answered."""
        models = {split_name(encoder)[0], split_name(extractor)[0]}
        if generator is not None:
            models.add(split_name(generator)[0])
        parts = [*RETRIEVAL, *MEASURING, *(ANSWERING if generator else ())]
        state = hashlib.sha256()
        for path in [*_files(self._root, parts), *self._modules(entry(method).module)]:
            self._add(state, path)
        for path in _files(self._root, ["models"]):
            if _begins(path.stem, models):
                self._add(state, path)
        return state.hexdigest()[:SHOWN]

    def _modules(self, own: str) -> list[Path]:
        """The method's module, and those of its package that it imports, and so on."""
        folder = self._root / "evaluation" / "baselines"
        found: set[str] = set()
        left = [own]
        while left:
            name = left.pop()
            path = folder / f"{name}.py"
            if name not in found and path.is_file():  # a module that is missing is said when the method is made
                found.add(name)
                left += _imported(path.read_text("utf-8"))
        return [folder / f"{name}.py" for name in sorted(found)]

    def _add(self, state: hashlib._Hash, path: Path) -> None:
        if path not in self._plain:
            self._plain[path] = plain(path.read_text("utf-8"))
        name = path.relative_to(self._root).as_posix()
        state.update(f"{name}\0{self._plain[path]}\0".encode("utf-8", "surrogatepass"))


def _begins(stem: str, modules: set[str]) -> bool:
    """Whether a module's name is one of these, or begins with one and goes on after an underscore."""
    return any(stem == module or stem.startswith(f"{module}_") for module in modules)


@lru_cache(maxsize=256)
def _imported(source: str) -> tuple[str, ...]:
    """Names of the modules of the methods' package that a source imports, in whatever place."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(f"{PACKAGE}."):
            names.append(node.module.removeprefix(f"{PACKAGE}.").split(".")[0])
        elif isinstance(node, ast.Import):
            names += [alias.name.removeprefix(f"{PACKAGE}.") for alias in node.names]
    return tuple(names)


def _files(root: Path, parts: Sequence[str]) -> Iterator[Path]:
    for part in parts:
        path = root / part
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


@lru_cache(maxsize=1024)
def plain(source: str) -> str:
    """The source without comments, docstrings and layout. Remembered, as it takes a second for all of them."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [each for each in body if not _is_bare_text(each)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]  # it has one, see above
    return ast.unparse(tree)


def _is_bare_text(node: ast.AST) -> bool:
    """A docstring, or a text that stands under a name to describe it: neither does anything."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
