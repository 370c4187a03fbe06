"""Data: handwritten digits, toys in the plane, and the loader that makes batches."""

from lab.data.dataset import Batch, Dataset, Rng, as_dataset
from lab.data.digits import digits
from lab.data.loader import Loader
from lab.data.toys import moons, spirals

__all__ = ["Batch", "Dataset", "Loader", "Rng", "as_dataset", "digits", "moons", "spirals"]
