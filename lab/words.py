"""Words of messages that depend on what stands before them: "1 step" and "2 steps", "an int" and "a float".

They are few, and a sentence that says "1 steps" makes a reader look twice at the number.
"""

from __future__ import annotations


def counted(n: int, one: str, many: str = "") -> str:
    """So many of something; `many` where the plural has more than an s.

    Example:
        >>> counted(1, "step"), counted(1200, "step"), counted(2, "micro-batch", "micro-batches")
        ('1 step', '1200 steps', '2 micro-batches')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def kind_of(value: object) -> str:
    """The type of a value with its article.

    Example:
        >>> kind_of(3), kind_of(2.5), kind_of(None), kind_of("x")
        ('an int', 'a float', 'None', 'a str')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"
