"""Without a network the embedded configuration works, and asks for none: in a namespace that has no interface up."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_model import local_model

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600
"""Seconds; a busy machine is no error."""


@pytest.fixture(scope="module")
def cut_off() -> list[str]:
    """The words that run a command without a network."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no `unshare` here (Linux only), so the network cannot be taken away")
    tried = subprocess.run(["unshare", "-n", "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"a network namespace is not permitted here: {tried.stderr.strip()}")
    return ["unshare", "-n"]


def lived(words: Sequence[str], *arguments: str) -> dict[str, Any]:
    """What the watched memory said, and what it tried to reach."""
    ran = subprocess.run(
        [*words, sys.executable, "-m", "tests.support.audited", *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def test_adding_and_recalling_need_no_network_and_try_none(cut_off: list[str], tmp_path: Path) -> None:
    said = lived(cut_off, str(tmp_path))
    assert said["added"] == ["light", "varnholt", "aldersund"]
    assert said["recalled"][0] == "light"
    assert said["status"] == 0
    assert said["attempts"] == []


@pytest.mark.model
def test_the_local_model_reaches_its_own_server_only(cut_off: list[str], tmp_path: Path) -> None:
    local_model()
    said = lived(cut_off, str(tmp_path), "--ask")
    assert said["written"] > 0, said["reason"]
    assert [host for _, host in said["attempts"] if not host.startswith("/")] == []
    assert said["attempts"], "it was reached by the path of a socket"


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, to see what Python is not told of")
def test_not_even_code_beneath_python_tries_to_connect(tmp_path: Path) -> None:
    log = tmp_path / "log"
    watched = ["strace", "-f", "-e", "trace=connect,sendto,sendmsg", "-o", str(log)]
    if subprocess.run([*watched, "true"], capture_output=True, check=False).returncode:
        pytest.skip("tracing a process is not permitted here")
    assert lived(watched, str(tmp_path))["recalled"]
    assert re.findall(r"\b(?:connect|sendto|sendmsg)\(.*", log.read_text(errors="replace")) == []


def test_the_watching_sees_what_is_tried(cut_off: list[str]) -> None:
    script = (
        "import socket\n"
        "from tests.support.audited import record\n"
        "attempts = []\n"
        "record(attempts)\n"
        "for attempt in (lambda: socket.create_connection(('192.0.2.1', 80), 1),"
        " lambda: socket.getaddrinfo('example.org', 80),"
        " lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'', ('192.0.2.2', 53))):\n"
        "    try:\n"
        "        attempt()\n"
        "    except OSError:\n"
        "        pass\n"
        "print({host for _, host in attempts} == {'192.0.2.1', 'example.org', '192.0.2.2'})\n"
    )
    ran = subprocess.run(
        [*cut_off, sys.executable, "-W", "ignore", "-c", script],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE,
    )  # fmt: skip
    assert ran.stdout == "True\n"
