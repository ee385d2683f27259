"""How the tests are run: the same examples each time, unless new ones are asked for, and with a Ctrl-C that works."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.register_profile("explore", max_examples=1000, print_blob=True)
# A check that may fail at random says nothing of the change it was run on. New examples are looked for apart from it:
# `HYPOTHESIS_PROFILE=explore make test`; what they find becomes an `@example`.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> None:
    """A process that is started in the background ignores Ctrl-C, and so would the tests that press it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
