"""The options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


class Method(StrEnum):
    """The retrieval methods; named here again because the settings are a slow import."""

    ECPHORY = "ecphory"
    PAPER = "paper"
    DENSE = "dense"
    BM25 = "bm25"
    HYBRID = "hybrid"


class InputFormat(StrEnum):
    """How standard input is read."""

    AUTO = "auto"
    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    JSONL = "jsonl"


class ExportFormat(StrEnum):
    """What an export is written as."""

    JSONL = "jsonl"
    GRAPHML = "graphml"
    PARQUET = "parquet"


Store: TypeAlias = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="The store; default from the settings.", show_default=False),
]
Config: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="A TOML file of settings.", show_default=False),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]


def known_encoder(name: str | None) -> str | None:
    """The name, if it can be that of an encoder; else a wrong command line."""
    if name is None:
        return None
    from ecphoryrag.settings.models import encoder_name  # noqa: PLC0415 - a slow import, where the option is given

    try:
        return encoder_name(name)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


Encoder: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        callback=known_encoder,
        metavar="NAME",
        help="The encoder of the store, fixed when it is created: static, minilm, none, ollama/MODEL, openai/MODEL.",
        show_default=False,
    ),
]
MethodOption: TypeAlias = Annotated[
    Method | None,
    typer.Option("--method", help="How to recall; default from the settings.", show_default=False),
]
K: TypeAlias = Annotated[
    int | None,
    typer.Option("-k", min=1, metavar="N", help="Chunks to recall; default from the settings.", show_default=False),
]
Where: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="KEY=VALUE",
        help="Only documents with this metadata. Repeat for more keys; a key repeated: any of its values.",
        show_default=False,
    ),
]
Question: TypeAlias = Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in quotes.")]
