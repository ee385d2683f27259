"""What a name may be shortened to."""

from __future__ import annotations

import pytest

from ecphoryrag.text.short_forms import short_forms


@pytest.mark.parametrize(
    ("key", "forms"),
    [
        ("dunlisk", []),
        ("ilka varnholt", []),
        ("sir ilka varnholt", ["ilka varnholt"]),
        ("ilka maria varnholt", ["ilka varnholt", "maria varnholt", "ilka maria"]),
        ("a b c", []),
        (
            "ilka maria von varnholt",
            [
                "ilka varnholt",
                "ilka von varnholt",
                "ilka maria varnholt",
                "maria von varnholt",
                "von varnholt",
                "ilka maria",
                "ilka maria von",
            ],
        ),
    ],
)
def test_short_forms(key: str, forms: list[str]) -> None:
    assert short_forms(key) == forms
