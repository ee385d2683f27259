"""Calls of language models: replies read as values, asked for until they can be used, and within a budget."""
