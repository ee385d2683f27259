"""Where settings come from, and which came from where."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_settings import EnvSettingsSource
from pydantic_settings import SettingsError as PydanticSettingsError

from ecphoryrag.errors import SettingsError
from ecphoryrag.settings.models import encoder_name
from ecphoryrag.settings.root import ENVIRONMENT_PREFIX, NESTED, Settings

CONFIG_VARIABLE = ENVIRONMENT_PREFIX + "CONFIG"
CONFIG_FILE = Path("ecphory.toml")
MOST_BYTES = 2**20
"""Of a settings file; what is named by mistake may be huge, or a device that has no end."""

Origin: TypeAlias = Literal["default", "file", "environment", "argument"]
Tree: TypeAlias = dict[str, Any]
"""Settings before they are validated, as a TOML file holds them."""
Names: TypeAlias = tuple[str, ...]
"""The name of a setting, group by group."""


@dataclass(frozen=True, slots=True)
class SettingValue:
    """One setting, for showing: its dotted name, value, where that came from, and why the default is what it is."""

    name: str
    value: str | int | float | bool | None
    origin: Origin
    detail: str
    """The file or the variable that set it."""
    reason: str


@dataclass(frozen=True, slots=True)
class _Sources:
    """What each source says."""

    arguments: Tree
    environment: Tree
    variables: Mapping[Names, str]
    """The environment variable that set a setting, or the group it is in."""
    file: Tree
    path: Path | None

    def origin(self, names: Names) -> tuple[Origin, str]:
        """The strongest source that sets this, and the file or variable."""
        if _holds(self.arguments, names):
            return "argument", ""
        if _holds(self.environment, names):
            within = (names[:length] for length in range(len(names), 0, -1))
            return "environment", next((self.variables[group] for group in within if group in self.variables), "")
        return ("file", str(self.path)) if _holds(self.file, names) else ("default", "")


def load_settings(arguments: Mapping[str, Any] | None = None, config: Path | None = None) -> Settings:
    """The settings in force. ``arguments`` is a nested mapping that overrides all else.

    Strongest first: arguments, environment, file, defaults. The file is ``config``, or what ``ECPHORY_CONFIG`` names,
    or ``ecphory.toml`` in the working folder if it is there; a relative path in it counts from its own folder. An
    empty variable is as good as none. Raises SettingsError, naming the setting and where its value stands.
    """
    return _validated(_sources(arguments, config))


def with_encoder(settings: Settings, encoder: str) -> Settings:
    """The same settings with this encoder. Raises SettingsError for what cannot be one."""
    try:
        return settings.model_copy(update={"encoder": encoder_name(encoder)})
    except ValueError as error:
        raise SettingsError(f"setting encoder: {error}") from error


def explain_settings(arguments: Mapping[str, Any] | None = None, config: Path | None = None) -> list[SettingValue]:
    """Every setting in force with its origin, in the order of their declaration. Raises SettingsError."""
    sources = _sources(arguments, config)
    return [
        SettingValue(".".join(names), value, *sources.origin(names), reason)
        for names, value, reason in _leaves(_validated(sources))
    ]


def _sources(arguments: Mapping[str, Any] | None, config: Path | None) -> _Sources:
    variables = {names: variable for variable, names in _variables()}
    return _Sources(dict(arguments or {}), _environment(variables), variables, *_file(config))


def _validated(sources: _Sources) -> Settings:
    tree = _merge(sources.file, sources.environment, sources.arguments)
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError(_describe(error, sources)) from error


def _file(config: Path | None) -> tuple[Tree, Path | None]:
    named = config or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    path = named or CONFIG_FILE
    if named is None and not path.is_file():
        return {}, None
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise SettingsError(f"{path} has more than {MOST_BYTES >> 10} KiB, so it is no settings file; name another")
        tree = tomllib.loads(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except OSError as error:
        remedy = "correct the path" if config else f"correct the path or unset {CONFIG_VARIABLE}"
        raise SettingsError(f"cannot read the settings file {path}: {error.strerror}; {remedy}") from error
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a number of thousands of digits, too deep
        raise SettingsError(f"the settings file {path} is not valid TOML: {error}; correct it") from error
    _place_paths(Settings, tree, path.parent)
    return tree, path


def _place_paths(group: type[BaseModel], tree: Tree, folder: Path) -> None:
    """Let relative paths count from the file's folder, so that the file means the same wherever the user stands."""
    for name, info in group.model_fields.items():
        value = tree.get(name)
        if isinstance(value, dict) and isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            _place_paths(info.annotation, value, folder)
        elif isinstance(value, str) and info.annotation in (Path, Path | None) and not value.startswith("~"):
            tree[name] = folder / value


def _variables() -> Iterator[tuple[str, Names]]:
    """Each variable of ours that is not empty, with the setting or group it names."""
    for variable, value in os.environ.items():
        name = variable.upper()
        if value and name.startswith(ENVIRONMENT_PREFIX) and name != CONFIG_VARIABLE:
            yield variable, tuple(name.removeprefix(ENVIRONMENT_PREFIX).lower().split(NESTED))


def _environment(variables: Mapping[Names, str]) -> Tree:
    """The ``ECPHORY_`` variables as a tree. Raises SettingsError for a name that is no setting: it would be ignored."""
    unknown = [f"{variable} names no setting{_meant(names)}" for names, variable in variables.items() if not _is(names)]
    if unknown:
        raise SettingsError(f"environment: {'; '.join(unknown)}. See `ecphory config` for every setting.")
    source = EnvSettingsSource(Settings)
    try:
        return source()
    except PydanticSettingsError as error:
        groups = ", ".join(variable for names, variable in variables.items() if _is_group(names))
        raise SettingsError(f"environment: {groups} sets a whole group, so it must be a JSON object") from error


def _is(names: Names) -> bool:
    return _is_group(names) or any(known == names for known, _, _ in _leaves(Settings()))


def _is_group(names: Names) -> bool:
    return any(known[: len(names)] == names and len(known) > len(names) for known, _, _ in _leaves(Settings()))


def _meant(names: Names) -> str:
    """The setting that was probably meant."""
    known = [".".join(leaf) for leaf, _, _ in _leaves(Settings())]
    if names[-1] in known:
        return f" (perhaps {names[-1]}, outside of any group, is meant)"
    close = difflib.get_close_matches(".".join(names), known, n=1)
    return f" (perhaps {close[0]} is meant)" if close else ""


def _merge(*trees: Tree) -> Tree:
    merged: Tree = {}
    for tree in trees:
        for name, value in tree.items():
            if isinstance(value, dict) and isinstance(merged.get(name), dict):
                merged[name] = _merge(merged[name], value)
            else:
                merged[name] = value
    return merged


def _leaves(group: BaseModel, above: Names = ()) -> Iterator[tuple[Names, Any, str]]:
    for name, info in type(group).model_fields.items():
        value = getattr(group, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, (*above, name))
        else:
            shown = str(value) if isinstance(value, Path) else value
            yield (*above, name), shown, " ".join((info.description or "").split())


def _holds(tree: Tree, names: Names) -> bool:
    at: Any = tree
    for name in names:
        if not isinstance(at, dict) or name not in at:
            return False
        at = at[name]
    return True


def _describe(error: ValidationError, sources: _Sources) -> str:
    """One line a wrong setting: its name, what is wrong, and where it was set."""
    lines = []
    for problem in error.errors():
        names = tuple(str(part) for part in problem["loc"])
        origin, detail = sources.origin(names)
        places = {"environment": f" (set by the environment variable {detail})", "file": f" (set in {detail})"}
        unknown = problem["type"] == "extra_forbidden"
        said = f"no such setting{_meant(names)}" if unknown else problem["msg"].removeprefix("Value error, ")
        lines.append(f"setting {'.'.join(names)}: {said}{places.get(origin, '')}")
    return "; ".join(lines) + ". See `ecphory config` for every setting."
