"""Processes that begin at once: forked from one that has imported everything, and otherwise is untouched.

    python -m tests.support.durable.hatchery

reads lines of JSON: ``{"call": "module:function", "with": {...}}`` forks a process that calls the function with these
keywords and answers with its number; ``{"wait": number}`` answers with its exit code, negative for a signal.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PRELOADED = ("tests.support.durable.story", "ecphoryrag.store.sqlite", "ecphoryrag.models.names")


class Hatched:
    """A process that was forked."""

    def __init__(self, hatchery: Hatchery, pid: int) -> None:
        self._hatchery = hatchery
        self._pid = pid
        self._code: int | None = None

    def kill(self) -> None:
        """``kill -9``; in vain if it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def wait(self, seconds: float) -> int:
        """Its exit code. After so many seconds it is killed, so that nothing waits for ever."""
        if self._code is None:
            timer = threading.Timer(seconds, self.kill)
            timer.start()
            try:
                self._code = int(self._hatchery.ask({"wait": self._pid}))
            finally:
                timer.cancel()
        return self._code


class Hatchery:
    """See the module."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Hatchery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def start(self, call: Callable[..., None], **words: Any) -> Hatched:
        """Fork a process that calls this function with these words, which must be of JSON's types."""
        return Hatched(self, int(self.ask({"call": f"{call.__module__}:{call.__name__}", "with": words})))

    def ask(self, request: dict[str, Any]) -> str:
        """The answer to one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


def main() -> None:
    """See the module."""
    for name in PRELOADED:
        importlib.import_module(name)
    while line := sys.stdin.readline():
        request = json.loads(line)
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        else:
            answer = os.fork()
            if not answer:
                _run(request["call"], request["with"])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _run(call: str, words: dict[str, Any]) -> None:
    code = 1
    try:
        module, _, function = call.partition(":")
        getattr(importlib.import_module(module), function)(**words)
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
