"""Prompt, generate, check citations, abstain."""
