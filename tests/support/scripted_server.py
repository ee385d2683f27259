"""The scripted server in a process of its own, so that it takes no time from the one that is measured.

with scripted_server(latency=0.2) as url:
    ...
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.llama_server import llama_server
from tests.support.scripted_extraction import extracted

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def scripted_server(latency: float) -> Iterator[str]:
    """The base URL of a server that extracts by rule, each call taking so many seconds."""
    words = [sys.executable, "-m", "tests.support.scripted_server", str(latency)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.communicate("")


def main() -> None:
    """Serve until standard input ends."""
    with llama_server(extracted, latency=float(sys.argv[1])) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
