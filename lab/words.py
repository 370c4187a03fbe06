"""Words of messages that depend on what was given: "1 step" and "2 steps", "an int" and "a float", a value in one line.

They are few, and a sentence that says "1 steps" makes a reader look twice at the number.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


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


def shown(value: object, most: int = 80) -> str:
    """A value as a message shows it: its repr in one line and not for ever, whatever it is.

    Example:
        >>> import numpy as np
        >>> shown("ring"), shown(np.eye(2)), shown("a" * 100, most=9)
        ("'ring'", 'array([[1., 0.], [0., 1.]])', "'aaaaa...")
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 -- a repr of theirs that fails shall not hide what is told of the value
        text = f"<{type(value).__name__}>"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def said(error: BaseException, most: int = 120) -> str:
    """What an error says, in one line; "" if it says nothing.

    Example:
        >>> said(ZeroDivisionError("division by zero")), said(ValueError())
        ('division by zero', '')
    """
    try:
        text = " ".join(str(getattr(error, "problem", error)).split())
    except Exception:  # noqa: BLE001 -- an error of theirs may have a broken __str__
        text = ""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was meant, if one is near; "" if none is.

    Example:
        >>> nearest("rign", ["naive", "ring"]), nearest("tree", ["naive", "ring"])
        ('ring', '')
    """
    return next(iter(difflib.get_close_matches(word, list(known), n=1)), "")


def one_of(given: object, known: Iterable[str]) -> str:
    """A hint of what could have been named, and of what was meant if a known word is near.

    Example:
        >>> one_of("rign", ["naive", "ring"]), one_of(None, ["naive", "ring"])
        ("did you mean 'ring'? One of naive, ring", 'one of naive, ring')
    """
    words = list(known)
    meant = nearest(given, words) if isinstance(given, str) else ""
    return f"{f'did you mean {meant!r}? One' if meant else 'one'} of {', '.join(words)}"
