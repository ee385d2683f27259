"""Prompt, generate, check citations, abstain."""

from __future__ import annotations

from ecphoryrag.answering.run import answer

__all__ = ["answer"]
