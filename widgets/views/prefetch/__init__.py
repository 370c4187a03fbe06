"""PrefetchView: load, preprocess and compute over time."""
