"""What a model thinks aloud before it replies, in the ways in which models and servers mark it."""

from __future__ import annotations

import re

_TAG = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection)"
_SIGNS = {"[THINK]": "[/THINK]", "<|START_THINKING|>": "<|END_THINKING|>", "◁think▷": "◁/think▷"}
_OPENED = re.compile(
    rf"\s*(?:<(?P<tag>{_TAG})(?:\s[^<>]{{0,80}})?>|(?P<sign>{'|'.join(map(re.escape, _SIGNS))}))", re.IGNORECASE
)
_CLOSED = re.compile(rf"</{_TAG}>|{'|'.join(map(re.escape, _SIGNS.values()))}", re.IGNORECASE)
_CLOSED_ON_ITS_LINE = re.compile(rf"^[ \t]*(?:{_CLOSED.pattern})", re.IGNORECASE | re.MULTILINE)
_VALUE = re.compile(r"\s*(?:```\w*\s*)?[{\[]")
_CHANNEL = re.compile(r"\s*(?:<\|start\|>\w*)?<\|channel\|>")
_FINAL = "<|channel|>final<|message|>"


def without_reasoning(text: str) -> str | None:
    """The reply less the reasoning it begins with; None if it breaks off before that ends.

    Reasoning stands in tags such as ``<think>``, in other signs, or in a channel of its own. Where a chat template has
    written the opening tag itself, only the closing one is in the text: it ends what is no JSON before it, or begins a
    line, which it never does inside a JSON string. Takes time in proportion to the length.
    """
    if _CHANNEL.match(text) or (_FINAL in text and not _VALUE.match(text)):
        _, final, said = text.rpartition(_FINAL)
        return said.partition("<|")[0].strip() if final else None
    at = 0
    while (opened := _OPENED.match(text, at)) is not None:
        end = f"</{opened['tag']}>" if opened["tag"] else next(_SIGNS[one] for one in _SIGNS if _same(one, opened))
        closed = re.compile(re.escape(end), re.IGNORECASE).search(text, opened.end())
        if closed is None:
            return None
        at = closed.end()
    if not at:
        for closed in _CLOSED_ON_ITS_LINE.finditer(text):
            at = closed.end()
        while (closed := _CLOSED.search(text, at)) is not None and not _VALUE.match(text, at):
            at = closed.end()
    return text[at:].lstrip() if at else text


def _same(sign: str, opened: re.Match[str]) -> bool:
    return sign.casefold() == opened["sign"].casefold()
