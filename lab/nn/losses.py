"""Losses: `(prediction, targets) -> scalar`, the mean over the batch, or its `reduction="sum"` or `"none"`.

They are functions of the op table, written in `lab/ops/nn.py` (of labels) and `lab/ops/losses.py` (of numbers).
"""

from __future__ import annotations

from lab.ops import bce_with_logits, cross_entropy, huber, kl, l1, mse, nll

__all__ = ["bce_with_logits", "cross_entropy", "huber", "kl", "l1", "mse", "nll"]
