"""The tours of the README run as they are written, in a folder of their own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.local_model import local_model

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path, generator: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "ECPHORY_GENERATOR": generator, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


@pytest.mark.model
def test_the_python_tour(tmp_path: Path) -> None:
    local_model()
    (tour,) = blocks("python")
    done = run([sys.executable, "-W", "error", "-c", tour], tmp_path, "local")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "3 added, 0 failed"
    assert {line.split()[1] for line in lines[1:3]} == {"Skerrow", "Ilse"}
    assert "Kettlemoor" in lines[3]


def test_the_command_line_tour(tmp_path: Path) -> None:
    (tour,) = blocks("console")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    printed = {}
    for line in tour.splitlines():
        command = line.removeprefix("$ ")
        assert command.startswith("ecphory "), f"the tour holds a line that is not a command: {line}"
        done = run([sys.executable, "-m", "ecphoryrag", *shlex.split(command)[1:]], tmp_path, "none")
        name = shlex.split(command)[1]
        assert done.returncode == (4 if name == "ask" else 0), f"{command}: {done.stdout}{done.stderr}"
        printed[name] = done.stdout
    assert "hask_shipyard" in printed["recall"]
    assert len(printed["list"].splitlines()) == 2
    assert '"documents"' in printed["status"]


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    assert {"demo", "test"} <= targets
    assert {target for target in targets if f"\n{target}:" not in makefile} == set()


def test_links_of_the_readme_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
