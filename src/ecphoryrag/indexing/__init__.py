"""The road of a document: load, chunk, extract, encode, commit."""
