"""Experiments about differentiation: each really runs, on the learner's own function, and says what it measured.

One file an experiment. The result of each holds a recording, so that `ErrorView(lab.measure_errors(f, 1.0))` shows it.
"""
