"""Adapters: encoders, extractors and generators, one vendor a file."""
