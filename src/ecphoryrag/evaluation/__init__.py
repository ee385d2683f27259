"""Measuring recall: data sets, metrics, statistics, the run over methods, and its report."""
