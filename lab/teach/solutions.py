"""A right answer to every exercise, by name: for instructors, and for the tests that run each lesson with them."""

from __future__ import annotations

SOLUTIONS: dict[str, str] = {
    "multiply_rule": """\
def multiply_rule(ct, x, y):
    return ct * y, ct * x
""",
    "training_loop": """\
def training_loop(loss, optimizer, n_steps):
    for _ in range(n_steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
""",
}
"""Source text of each solution: it replaces the stub's cell."""
