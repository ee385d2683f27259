"""``python -m ecphoryrag`` is the command ``ecphory``."""

from __future__ import annotations

from ecphoryrag.cli import main

if __name__ == "__main__":
    main()
