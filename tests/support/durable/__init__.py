"""Ordeals of the store: a disk that fails, a process that dies, a story to be told meanwhile, and a model of it."""
