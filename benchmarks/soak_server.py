"""Model servers for the soak: the local model served over HTTP by llama.cpp in a process of its own, or a script.

    python -m benchmarks.soak_server MODEL.gguf CONTEXT

serves until standard input ends; the first line it writes is its address.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.llama_server import llama_server
from tests.support.loopback import Asked
from tests.support.scripted_extraction import filled

from ecphoryrag.errors import ModelNotAvailable
from ecphoryrag.models.files import resolve_model
from ecphoryrag.models.llama_cpp import usable_cores
from ecphoryrag.settings import LocalModelSettings

ROOT = Path(__file__).resolve().parent.parent
CONTEXT = 4096
SILENT = 0
NAMES = 16
"""Entities that the script finds in a chunk, at most."""
_NAME = re.compile(r"[A-Z][\w'’-]+(?: (?:of |the |de )?[A-Z][\w'’-]+)*|\b\d{4}\b")


@contextmanager
def local_model_server(settings: LocalModelSettings) -> Iterator[tuple[str, str]]:
    """(address, model name) of llama.cpp's server with the local model. Raises ModelNotAvailable."""
    path = resolve_model(settings)
    words = [sys.executable, "-m", "benchmarks.soak_server", str(path), str(CONTEXT)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip() if process.stdout is not None else ""
            if not address:
                raise ModelNotAvailable(f"llama.cpp cannot serve {path.name}: see its message above")
            yield address, path.stem
        finally:
            process.communicate("")


@contextmanager
def script_server(latency: float = 0.02) -> Iterator[tuple[str, str]]:
    """(address, model name) of a server that lists the capitalised words of a prompt: to try the soak itself."""
    with llama_server(named, latency=latency, model="script") as server:
        yield server.address, "script"


def named(asked: Asked) -> str:
    """What the script says."""
    if asked.schema is None:
        return "Paris."
    last = str(asked.messages[-1]["content"])
    names = list(dict.fromkeys(_NAME.findall("\n".join(line for line in last.splitlines() if line[:2] == "> "))))
    return json.dumps(filled(asked.schema, names[:NAMES]), ensure_ascii=False)


def main() -> None:
    """See the module."""
    import xllamacpp  # noqa: PLC0415 - of the extra `local`

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx = int(sys.argv[2])
    params.n_parallel = 1  # the cores are one model's: two at once take twice as long each
    params.cpuparams.n_threads = usable_cores()
    params.cpuparams_batch.n_threads = usable_cores()
    params.verbosity = SILENT
    params.warmup = False
    params.cache_ram_mib = 0
    params.ui = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
