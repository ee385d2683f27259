"""Importing the package is quick because nothing heavy loads before it is used."""

from __future__ import annotations

import subprocess
import sys

import ecphoryrag

HEAVY = ("numpy", "scipy", "pydantic", "pydantic_settings", "apsw", "tokenizers", "safetensors", "typer", "rich")


def loaded(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    assert not loaded("import ecphoryrag").intersection(HEAVY)


def test_public_names_load_when_used() -> None:
    assert "numpy" in loaded("from ecphoryrag import Memory")


def test_every_public_name_is_there() -> None:
    assert {name for name in ecphoryrag.__all__ if getattr(ecphoryrag, name, None) is None} == set()
