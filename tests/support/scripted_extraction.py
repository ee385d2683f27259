"""Documents whose chunks can be told apart in a prompt, and a scripted model that extracts from them by rule.

Each chunk has a code of its own, which its names begin or end with: ``Zorbakabe Hale``, ``Marbakabe``. The server's log
thus says which chunk a call was for (:func:`chunk_of`), and a reply that reached another chunk would show in the store.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ecphoryrag.settings import ChunkSettings, ExtractionSettings, IndexingSettings, ModelsSettings, Settings
from ecphoryrag.settings.models import OpenAISettings
from ecphoryrag.types import Document
from tests.support.llama_server import CHAT, MODEL
from tests.support.loopback import Asked, Json

_SYLLABLES = ("ba", "ke", "di", "fo", "gu", "la", "me", "ni", "po", "ru")
_CODE = re.compile(r"\bZor((?:[a-z]{2}){4})\b")
_SHARED = ("Ilka Varnholt", "Corrabel")
CHUNK_TOKENS = 48
"""One sentence of these documents fits, two do not."""


def code(document: int, ordinal: int) -> str:
    """Eight letters for a chunk."""
    digits = f"{document:03}{ordinal}"
    return "".join(_SYLLABLES[int(digit)] for digit in digits)


def documents(number: int, chunks: int = 1) -> list[Document]:
    """So many documents of so many chunks (at most 10), a sentence a chunk."""
    return [_document(at, chunks) for at in range(number)]


def _document(number: int, chunks: int) -> Document:
    codes = [code(number, ordinal) for ordinal in range(chunks)]
    sentences = [
        f"Zor{one} Hale kept the light at Mar{one} for nineteen years, and one winter sailed with Ilka Varnholt past "
        f"Corrabel to the far island of Tes{one} in a boat that leaked."
        for one in codes
    ]
    return Document(f"log-{number:03}", " ".join(sentences), f"Log {number}")


def codes(number: int, chunks: int = 1) -> list[str]:
    """The codes of the chunks of these documents, in order."""
    return [code(document, ordinal) for document in range(number) for ordinal in range(chunks)]


def chunk_of(asked: Asked) -> str | None:
    """The code of the chunk that a chat is about; None for other chats. Fails if there are several."""
    found = {one for message in asked.messages for one in _CODE.findall(str(message.get("content", "")))}
    assert len(found) <= 1, f"one prompt holds {sorted(found)}"
    return found.pop() if found else None


def by_chunk(asked: Iterable[Asked]) -> Counter[str]:
    """How many of these requests were for which chunk."""
    return Counter(one for request in asked if request.path == CHAT and (one := chunk_of(request)) is not None)


def extracted(asked: Asked) -> str:
    """What the scripted model says: the names of the chunk, in whatever form the schema asks for."""
    one = chunk_of(asked)
    if asked.schema is None or one is None:
        return "Paris."
    names = (f"Zor{one} Hale", f"Mar{one}", f"Tes{one}", *_SHARED)
    return json.dumps(filled(asked.schema, names), ensure_ascii=False)


def filled(schema: Json, names: Iterable[str]) -> Any:
    """A value of the schema: its list holds an item for each name; an item's first free text is the name."""
    if schema.get("type") == "array" and "items" in schema:
        return [_item(schema["items"], name) for name in names]
    held = {key: filled(one, names) for key, one in schema.get("properties", {}).items() if one.get("type") == "array"}
    rest = {key: _plain(one, "") for key, one in schema.get("properties", {}).items() if key not in held}
    return rest | held


def _item(schema: Json, name: str) -> Any:
    if schema.get("type") == "object":
        free = [key for key, one in schema["properties"].items() if one.get("type") == "string" and "enum" not in one]
        said = {key: name if key == free[0] else f"told of with {name}" for key in free}
        return {key: said.get(key, _plain(one, name)) for key, one in schema["properties"].items()}
    if schema.get("type") == "array":
        places: list[Json] = schema["prefixItems"]
        free_places = [at for at, one in enumerate(places) if one.get("type") == "string" and "enum" not in one]
        return [
            (name if at == free_places[0] else f"told of with {name}") if at in free_places else _plain(one, name)
            for at, one in enumerate(places)
        ]
    return name


def _plain(schema: Json, text: str) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    least = int(schema.get("minimum", 1))
    values: Mapping[str, Any] = {"integer": least, "number": least, "boolean": True, "string": text}
    return values.get(str(schema.get("type")))


def settings(url: str, *, encoder: str = "none", attempts: int = 2, **server: Any) -> Settings:
    """Of an indexing with the language model behind this address; ``server`` goes to ``models.openai``."""
    given = {"timeout": 60.0, "tries": 3, "longest_wait": 0.02, "concurrency": 4, **server}
    return Settings(
        generator=f"openai/{MODEL}",
        extractor="llm",
        encoder=encoder,
        models=ModelsSettings(openai=OpenAISettings(base_url=url, **given)),
        indexing=IndexingSettings(
            chunks=ChunkSettings(budget=CHUNK_TOKENS, overlap=0), llm=ExtractionSettings(attempts=attempts)
        ),
    )
