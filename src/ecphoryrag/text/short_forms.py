"""Short forms of a name: how a text goes on to call what it has introduced in full."""

from __future__ import annotations

from ecphoryrag.text.wordlists import word_set

HONORIFICS = word_set(
    "sir dame dr lord lady mr mrs ms mx saint st president king queen prince princess general captain professor rev"
    " reverend"
)
"""What is put before a name without being part of it."""
LEAST_LETTERS = 4
"""A shorter form is a name of too many things."""


def short_forms(key: str) -> list[str]:
    """Keys under which the bearer of this one may be mentioned too, likeliest first.

    Without its honorific; first and last word; the same with a middle one; every ending and beginning of two words or
    more. Whether a form is used, and for nothing else, is for the caller to find out.
    """
    words = key.split()
    forms: list[list[str]] = []
    if len(words) > 2 and words[0] in HONORIFICS:
        words = words[1:]
        forms.append(words)
    if len(words) >= 3:
        forms.append([words[0], words[-1]])
        forms.append([words[0], *words[-2:]])
        forms.append([*words[:2], words[-1]])
        forms += [words[start:] for start in range(1, len(words) - 1)]
        forms += [words[:end] for end in range(2, len(words))]
    found = dict.fromkeys(" ".join(form) for form in forms)
    return [form for form in found if form != key and len(form.replace(" ", "")) >= LEAST_LETTERS]
