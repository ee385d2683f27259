"""What all groups of settings share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.types import PositiveInt

Share = Annotated[float, Field(ge=0, le=1)]
"""A part of a whole."""
Weight = Annotated[float, Field(ge=0)]
Count = PositiveInt


class Group(BaseModel):
    """A group of settings: immutable, and a name that it does not know is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, use_attribute_docstrings=True, allow_inf_nan=False
    )
