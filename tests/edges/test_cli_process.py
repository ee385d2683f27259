"""The command as a process of its own: speed, pipes, signals, terminals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ecphoryrag import Memory, Settings
from ecphoryrag.errors import StoreNotFound

NO_ENCODER = Settings(encoder="none")
COMMAND = [sys.executable, "-m", "ecphoryrag"]
ANSI = b"\x1b["
PATIENCE = 120
"""Seconds; a busy machine is no error."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("ECPHORY_")}
    return {**kept, "ECPHORY_ENCODER": "none", "ECPHORY_STORE": str(tmp_path / "s.ecphory"), "TERM": "xterm"}


def records(count: int) -> bytes:
    texts = (f"Record {number} tells of Ada Lovelace and Charles Babbage in London." for number in range(count))
    return b"".join(json.dumps({"id": f"r{n:05}", "text": text}).encode() + b"\n" for n, text in enumerate(texts))


def test_the_version_is_quick_and_imports_nothing_heavy(environment: dict[str, str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ecphoryrag", "--version"],
        env=environment, capture_output=True, check=True,
    )  # fmt: skip
    assert ran.stdout.startswith(b"ecphory 0.")
    heavy = (b"numpy", b"scipy", b"apsw", b"pydantic_settings", b"rich.console", b"tokenizers", b"markdown_it")
    assert [name for name in heavy if b"| " + name in ran.stderr.replace(b"|   ", b"| ")] == []


def test_add_and_recall_through_pipes_have_no_colours_and_no_bar(environment: dict[str, str]) -> None:
    add = subprocess.run([*COMMAND, "add", "-"], input=records(3), env=environment, capture_output=True, check=True)
    assert b"3 added" in add.stdout
    assert add.stderr == b""
    recall = subprocess.run([*COMMAND, "recall", "Ada Lovelace"], env=environment, capture_output=True, check=True)
    assert ANSI not in add.stdout + recall.stdout
    assert b"Record" in recall.stdout


def closed(command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """The command line as a shell runs it, ``ecphory`` standing for the program."""
    program = f"'{sys.executable}' -m ecphoryrag"
    line = command.replace("ecphory", program)
    return subprocess.run(["/bin/sh", "-c", line], env=environment, capture_output=True, check=False)


def test_standard_streams_may_be_closed(environment: dict[str, str]) -> None:
    ran = closed("ecphory add - <&-", environment)
    assert ran.returncode == 3
    assert b"failed: standard input: cannot be read: it is closed\n" in ran.stdout
    assert ran.stderr == b""
    for command in ("ecphory --version >&-", "ecphory list >&-", "ecphory list --json >&-"):
        ran = closed(command, environment)
        assert (ran.returncode, ran.stderr) == (0, b""), command
    assert closed("ecphory show nothing 2>&-", environment).returncode == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", ["--version", "status", "status --json", "config"])
def test_output_that_cannot_be_written_is_an_error_without_a_traceback(
    environment: dict[str, str], command: str
) -> None:
    subprocess.run([*COMMAND, "add", "-"], input=records(1), env=environment, capture_output=True, check=True)
    ran = closed(f"ecphory {command} >/dev/full", environment)
    assert ran.stderr == b"Error: cannot write the output: No space left on device.\n"
    assert ran.returncode == 1


def test_a_reader_that_has_seen_enough_is_no_error(environment: dict[str, str]) -> None:
    # More than a pipe holds, so that the writer is still writing when the reader leaves.
    long = b"".join(
        json.dumps({"id": f"r{n:05}", "title": "T" * 1000, "text": "Ada."}).encode() + b"\n" for n in range(200)
    )
    subprocess.run([*COMMAND, "add", "-"], input=long, env=environment, capture_output=True, check=True)
    listing = subprocess.Popen([*COMMAND, "list"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert listing.stdout is not None
    assert listing.stderr is not None
    assert listing.stdout.readline().startswith(b"r00000\t")
    listing.stdout.close()
    assert listing.wait(PATIENCE) == 0
    assert listing.stderr.read() == b""
    listing.stderr.close()


def test_ctrl_c_keeps_what_is_committed(environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [*COMMAND, "add", "-", "--json"],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as adding:  # fmt: skip
        try:
            assert adding.stdin is not None
            adding.stdin.write(records(70))  # a batch, and some that never make one
            adding.stdin.flush()  # and left open: the process waits for more
            deadline = time.monotonic() + PATIENCE
            while not _documents(environment) and time.monotonic() < deadline:
                time.sleep(0.05)
            adding.send_signal(signal.SIGINT)
            out, err = adding.communicate(timeout=PATIENCE)
        finally:
            adding.kill()
    assert adding.returncode == 130, err
    report = json.loads(out)
    assert report["interrupted"] is True
    assert len(report["added"]) == _documents(environment) > 0


def _documents(environment: dict[str, str]) -> int:
    try:
        with Memory.open(environment["ECPHORY_STORE"], settings=NO_ENCODER, read_only=True) as memory:
            return memory.status().documents
    except StoreNotFound:
        return 0


def test_a_terminal_gets_colours_and_a_bar(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(records(20))
    master, slave = pty.openpty()
    adding = subprocess.Popen([*COMMAND, "add", "a.jsonl"], cwd=tmp_path, env=environment, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert adding.wait(PATIENCE) == 0
    assert ANSI in shown
    assert b"20 added" in shown
    assert b"20/20" in shown


def test_an_output_that_is_not_utf8_is_no_crash(environment: dict[str, str]) -> None:
    ascii_only = {**environment, "PYTHONIOENCODING": "ascii"}
    record = json.dumps({"id": "z", "text": "Zoë met 漢字 🦉."}).encode()
    subprocess.run([*COMMAND, "add", "-"], input=record, env=ascii_only, capture_output=True, check=True)
    plain = subprocess.run([*COMMAND, "recall", "Zoë"], env=ascii_only, capture_output=True, check=True)
    assert b"Zo\\xeb met" in plain.stdout
    as_json = subprocess.run([*COMMAND, "show", "z", "--json"], env=ascii_only, capture_output=True, check=True)
    assert json.loads(as_json.stdout)["document"]["text"] == "Zoë met 漢字 🦉."


def test_a_reader_that_is_gone_before_the_first_line_is_no_error(environment: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run([*COMMAND, "config"], env=environment, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, b"")
