"""Settings of models: those run in this process, and the servers that run others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field

from ecphoryrag.settings.base import Count, Group

BACKENDS_OF_GENERATORS = ("local", "openai", "ollama", "none")
BACKENDS_OF_ENCODERS = ("static", "minilm", "none", "local", "openai", "ollama")
DAY = 86_400.0
"""Seconds: clocks and sockets take no number without end."""
_SERVED = ("openai", "ollama")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def split_name(name: str) -> tuple[str, str]:
    """A model's name in the settings as (backend, model): ``ollama/phi4`` is ``("ollama", "phi4")``.

    The model is empty where the backend alone names it; it may hold slashes of its own.
    """
    backend, _, model = name.partition("/")
    return backend, model


def is_served(name: str) -> bool:
    """Whether a model of this name in the settings is on a server."""
    return split_name(name)[0] in _SERVED


def generator_name(name: str) -> str:
    """The name of a generator, if it can be one. Raises ValueError."""
    return _model_name(name, BACKENDS_OF_GENERATORS)


def encoder_name(name: str) -> str:
    """The name of an encoder, if it can be one. Raises ValueError."""
    return _model_name(name, BACKENDS_OF_ENCODERS)


def extractor_name(name: str) -> str:
    """The name of an extractor, if it can be one. Raises ValueError."""
    backend, generator = split_name(name)
    if backend == "llm" and generator != "none":
        return f"llm/{generator_name(generator)}" if generator else name
    if name != "names":
        raise ValueError(f"{name!r} is no extractor: `names`, `llm` (the generator's model), or `llm/` and a generator")
    return name


def _model_name(name: str, backends: tuple[str, ...]) -> str:
    backend, model = split_name(name)
    if backend not in backends:
        known = ", ".join(f"`{one}/MODEL`" if one in _SERVED else f"`{one}`" for one in backends)
        raise ValueError(f"{name!r} begins with none of {known}")
    if backend in _SERVED and not model.strip():
        raise ValueError(f"`{backend}` must name a model, as in `{backend}/MODEL`")
    if model and backend not in (*_SERVED, "local"):
        raise ValueError(f"`{backend}` has one model only: leave `/{model}` out")
    return name


def _address(url: str) -> str:
    """The base URL without a slash at its end. Raises ValueError for what is none, or holds a password."""
    url = url.strip()
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("this is not an address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a name or password in an address would be shown: give the key in its variable or file")
    if parts.query or parts.fragment:
        raise ValueError("an address ends before any ? or #: a key goes into its variable or file, and is never shown")
    if not url.isprintable() or " " in url or "\\" in url:
        raise ValueError("no blank, backslash or control character may be in an address")
    if not _has_port(parts):
        raise ValueError("what follows the colon is no port: a number from 1 to 65535")
    return url.rstrip("/")


def _has_port(parts: SplitResult) -> bool:
    """Whether the port is one, if any is given."""
    try:
        return parts.port != 0
    except ValueError:  # it would quote what may be a password
        return False


def _variable(name: str) -> str:
    """The name of an environment variable. Raises ValueError for what looks like the key itself."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError("this is the NAME of the environment variable that holds the key, never the key")
    return name


Address = Annotated[str, AfterValidator(_address)]
Variable = Annotated[str, AfterValidator(_variable)]


class LocalModelSettings(Group):
    """Language models run in this process."""

    path: Path | None = None
    """Any GGUF file; empty means the default model, fetched once into the cache folder by `ecphory model fetch`."""
    cache: Path | None = None
    """Folder of the fetched model; empty means the user's cache folder."""
    context: Count = 4096
    """Tokens of prompt and reply together. Memory and time grow with it."""
    threads: Count | None = None
    """Processor threads; empty means one a core."""
    pooling: Literal["model", "mean", "cls", "last"] = "model"
    """Of an embedding model: how the vectors of its tokens become one. `model` is what its file says."""


class ServerSettings(Group):
    """What all servers have: where, how many calls at once, how often, and what to do when one fails."""

    timeout: Annotated[float, Field(gt=0, le=DAY)] = 300.0
    """Seconds to wait for a whole reply: a small machine takes minutes for a long prompt."""
    concurrency: Count = 4
    """Calls under way at once, at most."""
    rpm: Count | None = None
    """Requests a minute, at most; empty: no limit."""
    tpm: Count | None = None
    """Tokens a minute, at most, prompts and replies together; empty: no limit."""
    tries: Annotated[int, Field(ge=1, le=20)] = 5
    """How often one call is made before it counts as failed: busy servers, time-outs and broken connections."""
    longest_wait: Annotated[float, Field(ge=0, le=DAY)] = 60.0
    """Seconds between two tries, at most; also of what a server asks for with `Retry-After`."""
    failures: Count = 5
    """Calls that fail in a row, all tries used up, before the job stops. What was done is kept."""
    context: Count | None = None
    """Tokens of prompt and reply together; empty: what the server says, or 8192 where it does not say."""
    embedding_batch: Count = 32
    """Texts embedded by one request."""


class OpenAISettings(ServerSettings):
    """A server that speaks the OpenAI API: OpenAI, vLLM, llama.cpp, LM Studio, and many more."""

    base_url: Address = "https://api.openai.com/v1"
    """Where the API is, `/v1` included; for a server on this machine something like `http://localhost:8080/v1`."""
    api_key_env: Variable = "OPENAI_API_KEY"
    """The environment variable that holds the key. A server that needs no key needs no variable."""
    api_key_file: Path | None = None
    """A file that holds the key and nothing else; used where the variable is not set."""
    embedding_base_url: Address | None = None
    """Where embeddings are, if another server makes them; empty: at `base_url`."""
    structured: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    """How a reply is held to a schema; `auto` takes the strictest that the server accepts."""


class OllamaSettings(ServerSettings):
    """An Ollama server, by its own API."""

    base_url: Address = "http://localhost:11434"
    """Where the server is."""
    api_key_env: Variable = "OLLAMA_API_KEY"
    """The environment variable that holds the key, where a server wants one."""
    api_key_file: Path | None = None
    """A file that holds the key and nothing else; used where the variable is not set."""
    keep_alive: str = "10m"
    """How long the server keeps the model loaded after a call, in its own words: `10m`, `-1` for ever."""
    concurrency: Count = 1
    """Calls under way at once, at most; Ollama works on one at a time unless told otherwise."""


class PrefixSettings(Group):
    """Words put before a text for encoders that were trained with them. Empty: those known for the model, or none."""

    query: str | None = None
    """Before a question."""
    passage: str | None = None
    """Before a passage."""


class ModelsSettings(Group):
    """Models in this process, and servers."""

    local: LocalModelSettings = LocalModelSettings()
    """Models run in this process."""
    openai: OpenAISettings = OpenAISettings()
    """Any server that speaks the OpenAI API."""
    ollama: OllamaSettings = OllamaSettings()
    """An Ollama server."""
    prefixes: PrefixSettings = PrefixSettings()
    """Of the encoder that is chosen."""
    ledger: bool = True
    """Keep the replies of language models and the vectors of servers beside the store, so that none is paid twice."""
