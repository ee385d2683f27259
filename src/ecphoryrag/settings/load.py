"""Where settings come from, and which came from where."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_settings import SettingsError as PydanticSettingsError

from ecphoryrag.errors import SettingsError
from ecphoryrag.settings.root import ENVIRONMENT_PREFIX, NESTED, Settings

CONFIG_VARIABLE = ENVIRONMENT_PREFIX + "CONFIG"
CONFIG_FILE = Path("ecphory.toml")

Origin: TypeAlias = Literal["default", "file", "environment", "argument"]
Tree: TypeAlias = dict[str, Any]
"""Settings before they are validated, as a TOML file holds them."""


@dataclass(frozen=True, slots=True)
class SettingValue:
    """One setting, for showing: its dotted name, value, where that came from, and why the default is what it is."""

    name: str
    value: str | int | float | bool | None
    origin: Origin
    detail: str
    """The file or the variable that set it."""
    reason: str


def load_settings(arguments: Mapping[str, Any] | None = None, config: Path | None = None) -> Settings:
    """The settings in force. ``arguments`` is a nested mapping that overrides all else.

    Raises SettingsError, naming the setting and where its value stands.
    """
    tree = _merge(_file(config)[0], _environment(), dict(arguments or {}))
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError(_describe(error, config)) from error
    except PydanticSettingsError as error:
        raise SettingsError(f"the environment holds a setting that cannot be read: {error}") from error


def explain_settings(arguments: Mapping[str, Any] | None = None, config: Path | None = None) -> list[SettingValue]:
    """Every setting in force with its origin, in the order of their declaration."""
    settings = load_settings(arguments, config)
    file, path = _file(config)
    sources: list[tuple[Origin, Tree]] = [
        ("argument", dict(arguments or {})),
        ("environment", _environment()),
        ("file", file),
    ]
    values = []
    for names, value, reason in _leaves(settings):
        origin: Origin = next((origin for origin, tree in sources if _holds(tree, names)), "default")
        detail = {"file": str(path), "environment": ENVIRONMENT_PREFIX + NESTED.join(names).upper()}.get(origin, "")
        values.append(SettingValue(".".join(names), value, origin, detail, reason))
    return values


def _file(config: Path | None) -> tuple[Tree, Path | None]:
    named = config or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    path = named or CONFIG_FILE
    if named is None and not path.is_file():
        return {}, None
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")), path
    except OSError as error:
        raise SettingsError(f"cannot read the settings file {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"the settings file {path} is not valid TOML: {error}") from error


def _environment() -> Tree:
    """The ``ECPHORY_`` variables as a tree; an unknown name stays in it, so that it is refused and not ignored."""
    tree: Tree = {}
    for variable, value in os.environ.items():
        if not variable.upper().startswith(ENVIRONMENT_PREFIX) or variable.upper() == CONFIG_VARIABLE:
            continue
        *groups, name = variable[len(ENVIRONMENT_PREFIX) :].lower().split(NESTED)
        at = tree
        for group in groups:
            at = at.setdefault(group, {})
            if not isinstance(at, dict):
                raise SettingsError(f"the environment variable {variable} stands inside a value, not inside a group")
        at[name] = value
    return tree


def _merge(*trees: Tree) -> Tree:
    merged: Tree = {}
    for tree in trees:
        for name, value in tree.items():
            if isinstance(value, dict) and isinstance(merged.get(name), dict):
                merged[name] = _merge(merged[name], value)
            else:
                merged[name] = value
    return merged


def _leaves(group: BaseModel, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    for name, info in type(group).model_fields.items():
        value = getattr(group, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, (*above, name))
        else:
            shown = str(value) if isinstance(value, Path) else value
            yield (*above, name), shown, " ".join((info.description or "").split())


def _holds(tree: Tree, names: tuple[str, ...]) -> bool:
    at: Any = tree
    for name in names:
        if not isinstance(at, dict) or name not in at:
            return False
        at = at[name]
    return True


def _describe(error: ValidationError, config: Path | None) -> str:
    """One line a wrong setting: its name, what is wrong, and where it was set."""
    file, path = _file(config)
    environment = _environment()
    lines = []
    for problem in error.errors():
        names = tuple(str(part) for part in problem["loc"])
        if _holds(environment, names):
            where = f" (set by the environment variable {ENVIRONMENT_PREFIX}{NESTED.join(names).upper()})"
        elif _holds(file, names):
            where = f" (set in {path})"
        else:
            where = ""
        said = "no such setting" if problem["type"] == "extra_forbidden" else problem["msg"]
        lines.append(f"setting {'.'.join(names)}: {said}{where}")
    return "; ".join(lines) + ". See `ecphory config` for every setting."
