"""A laboratory for seeing how deep-learning frameworks work inside."""

__version__ = "0.1.0"
