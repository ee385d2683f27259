"""How the tests are run: the same examples each time, unless new ones are asked for."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.register_profile("explore", max_examples=1000, print_blob=True)
# A check that may fail at random says nothing of the change it was run on. New examples are looked for apart from it:
# `HYPOTHESIS_PROFILE=explore make test`; what they find becomes an `@example`.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
