"""Mixed precision: narrow formats, functions that compute in them, and losses scaled so that nothing is lost."""

from lab.precision.casting import autocast
from lab.precision.formats import BFLOAT16, FLOAT16, FORMATS, Format, format_of
from lab.precision.scaling import LossScale, Mixed, Scaler

__all__ = [
    "BFLOAT16",
    "FLOAT16",
    "FORMATS",
    "Format",
    "LossScale",
    "Mixed",
    "Scaler",
    "autocast",
    "format_of",
]
