"""Pure functions on text. Offsets are never lost."""
