"""The parameters of a method, read with their types and limits; whatever is not known is refused by name."""

from __future__ import annotations

from collections.abc import Mapping

from ecphoryrag.errors import SettingsError
from ecphoryrag.types import JsonValue


class Options:
    """Takes parameters one by one; :meth:`finish` then says which were given and never taken."""

    def __init__(self, method: str, given: Mapping[str, JsonValue]) -> None:
        self._method = method
        self._given = given
        self._taken: list[str] = []

    def count(self, name: str, default: int, least: int = 1) -> int:
        """A whole number of at least ``least``. Raises SettingsError."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(name, f"a whole number of at least {least}", value)
        return value

    def real(self, name: str, default: float, least: float, most: float) -> float:
        """A number from ``least`` to ``most``. Raises SettingsError."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self._wrong(name, f"a number from {least:g} to {most:g}", value)
        return float(value)

    def switch(self, name: str, *, default: bool) -> bool:
        """True or false. Raises SettingsError."""
        value = self._take(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of the words allowed, the first of them if none is given. Raises SettingsError."""
        value = self._take(name, allowed[0])
        if not isinstance(value, str) or value not in allowed:
            raise self._wrong(name, " or ".join(repr(word) for word in allowed), value)
        return value

    def text(self, name: str) -> str | None:
        """Text that is not blank, or None if it is not given. Raises SettingsError."""
        value = self._take(name, None)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise self._wrong(name, "text that is not blank", value)
        return value

    def finish(self) -> None:
        """Raises SettingsError if a parameter was given that the method does not have."""
        unknown = sorted(set(self._given) - set(self._taken))
        if unknown:
            known = ", ".join(sorted(self._taken)) or "none"
            raise SettingsError(f"{self._method} has no parameter {unknown[0]!r}; it has {known}")

    def _take(self, name: str, default: JsonValue) -> JsonValue:
        self._taken.append(name)
        return self._given.get(name, default)

    def _wrong(self, name: str, wanted: str, value: JsonValue) -> SettingsError:
        return SettingsError(f"the parameter {name!r} of {self._method} must be {wanted}; it is {value!r}")
