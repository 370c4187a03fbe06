"""Data: handwritten digits, toys in the plane, the loader that makes batches, and its prefetch."""

from lab.data.dataset import Batch, Dataset, Rng, as_dataset
from lab.data.digits import digits
from lab.data.loader import Loader
from lab.data.prefetch import Prefetch
from lab.data.toys import moons, spirals

__all__ = ["Batch", "Dataset", "Loader", "Prefetch", "Rng", "as_dataset", "digits", "moons", "spirals"]
