"""`docs/cli.md` and the program say the same: an undocumented command or option is an error, as is one that is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from ecphoryrag.cli.app import app
from ecphoryrag.cli.codes import ExitCode

TEXT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def commands() -> Iterator[tuple[str, Any]]:
    """Each command that does something, by its full name."""
    pending = [("ecphory", typer.main.get_command(app))]
    while pending:
        name, command = pending.pop()
        below = getattr(command, "commands", None)
        if below is None:
            yield name, command
        else:
            pending.extend((f"{name} {part}", found) for part, found in below.items())


COMMANDS = dict(commands())


def section(name: str) -> str:
    found = re.search(rf"^## `{re.escape(name)}[ `].*?(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert found, f"docs/cli.md has no section on `{name}`"
    return found[0]


def option_names(command: Any) -> set[str]:
    return {name for parameter in command.params if parameter.param_type_name == "option" for name in parameter.opts}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_with_its_options_and_no_others(name: str) -> None:
    documented = set(re.findall(r"^\| `(--?[a-z-]+)", section(name), re.MULTILINE))
    common = {"--store", "--config", "--json", "--encoder"} - documented
    assert documented | common & option_names(COMMANDS[name]) == option_names(COMMANDS[name])


def test_the_common_options_are_documented_once() -> None:
    before = TEXT.partition("\n## `ecphory")[0]
    for name in ("--store", "--config", "--json", "--encoder", "--version", "--help"):
        assert f"`{name}" in before, name


def test_no_command_is_documented_that_is_not_there() -> None:
    assert set(re.findall(r"^## `(ecphory(?: [a-z-]+)+)", TEXT, re.MULTILINE)) == set(COMMANDS)


def test_every_exit_code_is_documented() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)] == [code.value for code in ExitCode]
