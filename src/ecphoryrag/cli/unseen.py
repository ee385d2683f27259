"""Text that others wrote, made safe to be shown: a document cannot rewrite the terminal it is listed on."""

from __future__ import annotations

import re

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters and the overrides of writing direction: in a document they could rewrite the terminal."""
_BREAKS = re.compile("[\n\t\u2028\u2029]")


def visible(text: str) -> str:
    """The text with control characters written out, line ends and tabs kept."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def one_line(text: str) -> str:
    """The text as part of one line: line ends of every kind and tabs written out too."""
    return _BREAKS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), visible(text))
