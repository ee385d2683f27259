"""Triples of subject, relation and object, with names in the form under which two spellings of one name meet."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ecphoryrag.errors import InputError
from ecphoryrag.types import Document, JsonValue, Usage


class Triple(NamedTuple):
    """A fact: the words of its subject, relation and object, normalised by :func:`normal_phrase`."""

    subject: str
    relation: str
    object: str

    @property
    def notation(self) -> str:
        """The fact as the public code of HippoRAG 2 embeds it: in the notation of a Python tuple."""
        return str(tuple(self))


@dataclass(frozen=True, slots=True)
class Opened:
    """The triples of a corpus, what they cost, and what is missing."""

    triples: tuple[tuple[Triple, ...], ...]
    """One tuple a document, each triple once, in the order of the text."""
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()


def normal_phrase(text: str) -> str:
    """Lower case, and each run of signs that are no letter, mark or digit of any script as one space.

    The public code of HippoRAG 2 (``text_processing``) keeps a to z, 0 to 9 and spaces only, which empties names in
    other scripts and cuts those with diacritics; here they stay. For text of plain ASCII the two differ only in runs
    of several spaces.
    """
    kept = (sign if _is_word(sign) else " " for sign in unicodedata.normalize("NFC", text).lower())
    return " ".join("".join(kept).split())


def _is_word(sign: str) -> bool:
    return sign.isalnum() or unicodedata.category(sign).startswith("M")


def clean_triples(raw: Iterable[Sequence[str]]) -> tuple[Triple, ...]:
    """Normalised, each once, in order; those whose subject or object has no letter or digit are left out."""
    triples = (Triple(*map(normal_phrase, three)) for three in raw)
    return tuple(dict.fromkeys(triple for triple in triples if triple.subject and triple.object))


def given_triples(path: Path, documents: Sequence[Document]) -> Opened:
    """The triples of these documents from a JSON Lines file of records with ``id`` and ``triples`` (lists of three).

    Raises InputError, naming file and line, for a record of another form, and if the file has no document of these.
    """
    found: dict[str, tuple[Triple, ...]] = {}
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    identity, raw = _record(line, f"{path}, line {number}")
                    found[identity] = clean_triples(raw)
    except OSError as error:
        raise InputError(f"cannot read the triples in {path}: {error.strerror}; give the path of the file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: save it as UTF-8") from error
    missing = sum(document.id not in found for document in documents)
    if missing == len(documents):
        raise InputError(f"{path} has triples for none of the {missing} documents: do the two files belong together?")
    notes = (f"{missing} of {len(documents)} documents have no triples in {path.name}",) if missing else ()
    return Opened(tuple(found.get(document.id, ()) for document in documents), notes=notes)


def _record(line: str, where: str) -> tuple[str, list[list[str]]]:
    try:
        record: JsonValue = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}: not valid JSON ({error.msg}, column {error.colno})") from error
    identity = record.get("id") if isinstance(record, dict) else None
    triples = record.get("triples") if isinstance(record, dict) else None
    if not isinstance(identity, str) or not isinstance(triples, list):
        raise InputError(f"{where}: expected a record with `id` and a list `triples`")
    raw: list[list[str]] = []
    for three in triples:
        words = [word for word in three if isinstance(word, str)] if isinstance(three, list) else []
        if not isinstance(three, list) or len(words) != len(three) or len(words) != 3:
            raise InputError(f"{where}: a triple must be a list of three texts; found {json.dumps(three)[:80]}")
        raw.append(words)
    return identity, raw
