"""The collectives of the house, a family a file: one generator each, read it as what one rank does.

Sender and receiver of a hop name the same step, so step numbers mean the same on all ranks: who rests yields `()`.
The order in which a sum is made is part of each plan, so the same plan gives the same bits.
"""

from lab.parallel.paper.collectives import direct, double_tree, flat, halving, moving, ring, tree
from lab.parallel.paper.collectives.hierarchical import hierarchical

__all__ = ["direct", "double_tree", "flat", "halving", "hierarchical", "moving", "ring", "tree"]
