"""The form that a reply must have."""

from __future__ import annotations

from ecphoryrag.ports import JsonSchema
from ecphoryrag.types import JsonValue

REASONING_CHARACTERS = 400
ANSWER_CHARACTERS = 200
"""A small model that is not stopped runs on: two or three sentences of reasoning and a phrase as the answer."""
CITATIONS = 6


def reply_schema(evidence: int) -> JsonSchema:
    """JSON schema of a reply to a prompt with ``evidence`` (at least 1) numbered pieces.

    Reasoning comes first, so that the answer is conditioned on it; the evidence numbers are an enumeration, so that a
    server that enforces the schema cannot cite what was not given. ``answer`` null means that the evidence does not
    say.
    """
    numbers: list[JsonValue] = list(range(1, evidence + 1))
    properties: dict[str, JsonValue] = {
        "reasoning": {"type": "string", "maxLength": REASONING_CHARACTERS},
        "answer": {"anyOf": [{"type": "string", "minLength": 1, "maxLength": ANSWER_CHARACTERS}, {"type": "null"}]},
        "evidence": {
            "type": "array",
            "items": {"type": "integer", "enum": numbers},
            "minItems": 1,
            "maxItems": min(evidence, CITATIONS),
        },
    }
    return {
        "type": "object",
        "properties": properties,
        "required": ["reasoning", "answer", "evidence"],
        "additionalProperties": False,
    }
