"""Data: handwritten digits in two sizes, text, toys in the plane, the loader that makes batches, and its prefetch."""

from lab.data.dataset import Batch, Dataset, Rng, as_dataset
from lab.data.digits import digits, digits28
from lab.data.loader import Loader
from lab.data.prefetch import Prefetch
from lab.data.text import ALPHABET, bigram_entropy, lines, spelled, text
from lab.data.toys import moons, spirals

__all__ = [
    "ALPHABET",
    "Batch",
    "Dataset",
    "Loader",
    "Prefetch",
    "Rng",
    "as_dataset",
    "bigram_entropy",
    "digits",
    "digits28",
    "lines",
    "moons",
    "spelled",
    "spirals",
    "text",
]
