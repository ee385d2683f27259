"""The local model's file for tests that need it, and what to do if it is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ecphoryrag.errors import ModelFetchError, ModelNotAvailable
from ecphoryrag.models.files import resolve_model
from ecphoryrag.settings import LocalModelSettings

REQUIRED = "REQUIRE_LOCAL_MODEL"
ELSEWHERE = "ECPHORY_MODELS__LOCAL__PATH"


def local_model() -> LocalModelSettings:
    """Settings of the model to test with: the file the environment names, or the default one.

    Skips the test with the reason if it is not there, or fails it where ``make test`` has fetched it.
    """
    elsewhere = os.environ.get(ELSEWHERE)
    settings = LocalModelSettings(path=Path(elsewhere) if elsewhere else None, context=2048)
    try:
        resolve_model(settings)
    except (ModelNotAvailable, ModelFetchError) as error:
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(f"the tests are to run with the model, and it cannot be had: {error}")
        pytest.skip(str(error))
    return settings
