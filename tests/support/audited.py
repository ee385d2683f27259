"""A small life of a memory in a process of its own, in which every attempt to reach a network is recorded.

    python -m tests.support.audited FOLDER [--ask] [--loopback]

Writes to standard output one JSON object: ``attempts``, each ``[event, host]`` as Python's audit hooks tell it (a path
for a socket of the file system), and what the memory said. ``--loopback`` first turns on the loopback interface, which
a fresh network namespace has off.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import socket
import struct
import sys
from pathlib import Path

EVENTS = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname")
SIOCSIFFLAGS = 0x8914
IFF_UP = 0x1

TEXTS = [
    {"id": "light", "title": "Corrabel Light", "text": "Corrabel Light was built by Ilka Varnholt in Aldersund."},
    {"id": "varnholt", "title": "Ilka Varnholt", "text": "Ilka Varnholt was born in Tessamir."},
    {"id": "aldersund", "title": "Aldersund", "text": "Aldersund lies on the river Iskel."},
]
QUESTION = "Where was the builder of Corrabel Light born?"


def record(attempts: list[list[str]]) -> None:
    """Add to the list whatever asks for an address or a connection from now on, each once; it cannot be undone."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in EVENTS:
            address = arguments[0] if event.startswith("socket.get") else arguments[1]
            host = address[0] if isinstance(address, tuple) else address
            attempt = [event, str(host)]
            if attempt not in attempts:
                attempts.append(attempt)

    sys.addaudithook(hook)


def turn_loopback_on() -> None:
    """As ``ip link set lo up``; needs the right to do so."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh", b"lo", IFF_UP).ljust(40, b"\0"))


def live(folder: Path, *, ask: bool) -> dict[str, object]:
    """Add, recall, and if told so ask; the command line too."""
    from ecphoryrag import Memory, Settings  # noqa: PLC0415 - what is imported is watched too
    from ecphoryrag.cli import run  # noqa: PLC0415 - likewise
    from ecphoryrag.settings import AnsweringSettings  # noqa: PLC0415 - likewise

    store = folder / "memory.ecphory"
    answering = AnsweringSettings(
        evidence_tokens=100, links=0, answer_tokens=64
    )  # whether it answers well is not asked
    settings = Settings(store=store, generator="local" if ask else "none", answering=answering)
    said: dict[str, object] = {}
    with Memory.open(store, settings=settings) as memory:
        said["added"] = memory.add(TEXTS).added
        said["recalled"] = [evidence.chunk.document_id for evidence in memory.recall(QUESTION, k=2).chunks]
        if ask:
            answer = memory.ask(QUESTION, k=1)
            said["answer"], said["reason"], said["written"] = answer.text, answer.reason, answer.usage.output_tokens
    said["status"] = run(["--store", str(store), "status"])
    return said


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ask", action="store_true")
    parser.add_argument("--loopback", action="store_true")
    options = parser.parse_args()
    attempts: list[list[str]] = []
    record(attempts)
    if options.loopback:
        turn_loopback_on()
    said = live(options.folder, ask=options.ask)
    sys.stdout.write(json.dumps({"attempts": attempts, **said}) + "\n")


if __name__ == "__main__":
    main()
