"""Parts that all benchmarks share: processes, load, medians, text."""
