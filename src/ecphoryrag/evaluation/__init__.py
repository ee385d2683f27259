"""Data sets, metrics, methods, statistics and report."""
