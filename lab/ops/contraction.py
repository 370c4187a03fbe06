"""Sums of products along named axes: einsum, and the primitive that carries every product of arrays.

In the subscripts of `contract` an operand has each letter once, so that its rule for one operand is a contraction of
the cotangent with the others, and differentiates as often as one likes. `einsum` brings NumPy's spelling to that form.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np

from lab.errors import ArgumentError, ShapeError
from lab.ops.composite import composite
from lab.ops.picking import operand
from lab.ops.primitive import primitive
from lab.ops.sample import Sample
from lab.ops.shape import broadcast_to, reshape
from lab.ops.triangles import diagonal
from lab.shapes import Spec

Terms = tuple[str, ...]


@lru_cache(maxsize=1024)
def _parts(subscripts: str) -> tuple[Terms, str]:
    """The letters of each operand, and those of the result."""
    terms, out = subscripts.split("->")
    return tuple(terms.split(",")), out


def _lengths(terms: Terms, shapes: tuple[Any, ...], op: str) -> dict[str, int]:
    """The length of each letter's axis; axes of length 1 broadcast.

    Raises:
        ShapeError: operands disagree on the length of a letter, or have not as many axes as letters.
    """
    found: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        if len(term) != len(shape):
            raise ShapeError(f"{op} needs a letter for each axis", given=f"{term!r} for shape {tuple(shape)}",
                             hint="'...' stands for any axes that have no letter")  # fmt: skip
        for letter, n in zip(term, shape, strict=True):
            if found.setdefault(letter, n) not in (n, 1) and n != 1:
                raise ShapeError(
                    f"{op} needs one length for each letter",
                    given=f"{letter!r} is {found[letter]} and {n} in {', '.join(str(tuple(s)) for s in shapes)}",
                    hint="give axes that differ letters that differ",
                )
            found[letter] = n if found[letter] == 1 else found[letter]
    return found


@primitive(
    linear="each",
    precision="narrow",
    samples=[
        Sample(((2, 3), (3, 4)), {"subscripts": "ij,jk->ik"}),
        Sample(((2, 3), (4, 2), (2, 1)), {"subscripts": "bi,jb,bi->jb"}),
        Sample(((2, 3, 2),), {"subscripts": "ijk->ki"}),
    ],
    error_samples=[
        (((2, 3), (4,)), {"subscripts": "ij,j->i"}, "contract needs one length for each letter"),
        (((2, 3),), {"subscripts": "i->i"}, "contract needs a letter for each axis"),
    ],
    reference=lambda *xs, subscripts: np.einsum(subscripts, *xs),
)
def contract(*xs: Any, subscripts: str = "->") -> Any:
    """Products of entries, summed over the letters that the result has not: "ij,jk->ik" is the matrix product."""
    terms, out = _parts(subscripts)
    _lengths(terms, tuple(np.shape(x) for x in xs), "contract")
    dtype = np.result_type(*xs)
    arrays = [np.asarray(x, np.float32 if dtype.char == "e" else dtype) for x in xs]
    found = _contracted(list(terms), out, arrays)
    return found.astype(dtype, copy=False)


def _contracted(terms: list[str], out: str, xs: list[Any]) -> Any:
    """The operands contracted two by two, in the order that costs the least."""
    for chosen in _order(",".join(terms) + "->" + out, tuple(x.shape for x in xs)):
        mine = [(terms.pop(i), xs.pop(i)) for i in sorted(chosen, reverse=True)][::-1]
        needed = set(out).union(*terms)
        mine = [_summed(t, x, needed.union(*(u for j, (u, _) in enumerate(mine) if j != i)))
                for i, (t, x) in enumerate(mine)]  # fmt: skip
        left = out if not terms else "".join(c for c in dict.fromkeys("".join(t for t, _ in mine)) if c in needed)
        if len(mine) == 1:
            found = mine[0][1].transpose([mine[0][0].index(c) for c in left])
        else:
            (t, x), (u, y) = mine
            found = _pair(t, u, left, x, y)
        terms.append(left)
        xs.append(found)
    return xs[0]


@lru_cache(maxsize=1024)
def _order(subscripts: str, shapes: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Which operands to contract at each step, the result going to the end of the list."""
    n = len(shapes)
    if n < 3:
        return [tuple(range(n))]
    trial = [np.broadcast_to(np.ones(()), shape) for shape in shapes]
    steps = []
    for together in np.einsum_path(subscripts, *trial, optimize=("greedy", 2**62))[0][1:]:
        chosen = sorted(together)
        while len(chosen) > 1:
            steps.append(tuple(chosen[-2:]))
            n -= 1
            chosen = [*chosen[:-2], n - 1]
    return steps


def _summed(term: str, x: Any, needed: set[str]) -> tuple[str, Any]:
    """An operand summed over the letters that nobody else needs."""
    lost = tuple(i for i, c in enumerate(term) if c not in needed)
    if not lost:
        return term, x
    total: Any = np.add.reduce(x, axis=lost, dtype=x.dtype)
    return "".join(c for c in term if c in needed), np.asarray(total)


class _Plan(NamedTuple):
    """How the contraction of two operands is a matrix product: the order of axes for both, and back."""

    first: list[int]
    second: list[int]
    back: list[int]
    shared: int
    rows: int
    columns: int


@lru_cache(maxsize=1024)
def _plan(t: str, u: str, out: str) -> _Plan | None:
    """None where no letter is summed or none is left: there one loop over the entries is the faster way."""
    shared = [c for c in t if c in u and c in out]
    summed = [c for c in t if c in u and c not in out]
    rows, columns = [c for c in t if c not in u], [c for c in u if c not in t]
    if not summed or not (rows or columns):
        return None
    made = shared + rows + columns
    return _Plan(
        [t.index(c) for c in shared + rows + summed], [u.index(c) for c in shared + summed + columns],
        [made.index(c) for c in out], len(shared), len(rows), len(columns),
    )  # fmt: skip


def _pair(t: str, u: str, out: str, x: Any, y: Any) -> Any:
    """Two operands contracted, by BLAS where it is a product of matrices."""
    plan = _plan(t, u, out)
    lengths = dict(zip(t, x.shape, strict=True))
    if plan is None or any(lengths.get(c, n) != n for c, n in zip(u, y.shape, strict=True)):
        return np.asarray(np.einsum(f"{t},{u}->{out}", x, y))
    x, y = x.transpose(plan.first), y.transpose(plan.second)
    lead, rows = x.shape[: plan.shared], x.shape[plan.shared : plan.shared + plan.rows]
    columns = y.shape[y.ndim - plan.columns :]
    m, k, n = (int(np.prod(s, dtype=np.int64)) for s in (rows, x.shape[plan.shared + plan.rows :], columns))
    product = np.matmul(x.reshape(*lead, m, k), y.reshape(*lead, k, n))
    return product.reshape(*lead, *rows, *columns).transpose(plan.back)


@contract.vjp(text="ct and the other operands contracted to the letters of x")
def _contract_vjp(ct: Any, _out: Any, *xs: Any, argument: int, subscripts: str) -> Any:
    terms, out = _parts(subscripts)
    mine, x = terms[argument], xs[argument]
    others = [(t, y) for i, (t, y) in enumerate(zip(terms, xs, strict=True)) if i != argument]
    lengths = _lengths(terms, tuple(y.shape for y in xs), "contract")
    met = set(out).union(*(t for t, _ in others))
    kept = "".join(c for c, n in zip(mine, x.shape, strict=True) if c in met and n == lengths[c])
    found = contract(ct, *(y for _, y in others), subscripts=",".join([out, *(t for t, _ in others)]) + "->" + kept)
    sizes = dict(zip(kept, found.shape, strict=True))
    if kept != mine:
        found = reshape(found, shape=tuple(sizes.get(c, 1) for c in mine))
    return found if tuple(found.shape) == tuple(x.shape) else broadcast_to(found, shape=tuple(x.shape))


@contract.shaped
def _contract_shape(*xs: Spec, subscripts: str) -> Spec:
    terms, out = _parts(subscripts)
    lengths = _lengths(terms, tuple(x.shape for x in xs), "contract")
    return Spec(tuple(lengths[c] for c in out), np.result_type(*(x.dtype for x in xs)))


@contract.batching
def _contract_batch(_size: int, mapped: tuple[bool, ...], *xs: Any, subscripts: str) -> Any:
    terms, out = _parts(subscripts)
    _lengths(terms, tuple(x.shape[m:] for x, m in zip(xs, mapped, strict=True)), "contract")
    new = next(c for c in ascii_letters if c not in subscripts)
    marked = [new + t if m else t for t, m in zip(terms, mapped, strict=True)]
    return contract(*xs, subscripts=",".join(marked) + "->" + new + out)


# --- NumPy's spelling -------------------------------------------------------------------------------------------------


def _numpy_einsum(subscripts: Any, *operands: Any, optimize: Any = True) -> Any:
    return einsum(subscripts, *operands)  # the order of the products is chosen here


@composite(
    leading="subscripts",
    samples=[
        Sample(((2, 3), (3, 2)), {"subscripts": "ij,jk"}),
        Sample(((3, 3), (2, 3)), {"subscripts": "ii,...i->...i"}),
        Sample(((2, 1, 3), (4, 3), (2,)), {"subscripts": "a...c, ...d, a -> ..."}),
    ],
    error_samples=[
        (((2, 3),), {"subscripts": "ij,jk"}, "einsum needs as many operands as terms"),
        (((2, 3), (4, 2)), {"subscripts": "ij,jk"}, "einsum needs one length for each letter"),
        (((2, 3),), {"subscripts": "ii"}, "einsum takes the diagonal of equal axes"),
        (((2, 3),), {"subscripts": "i"}, "einsum needs a letter for each axis"),
        (((2, 3),), {"subscripts": "ij->ik"}, "einsum has no operand with a letter of the result"),
        (((2, 3),), {"subscripts": "ij->jj"}, "einsum gives each axis of the result one letter"),
        (((2, 3),), {"subscripts": "i?"}, "einsum cannot read its subscripts"),
        (((2, 3),), {"subscripts": "...j->j"}, "einsum would lose the axes of '...'"),
    ],
    reference=lambda *xs, subscripts: np.einsum(subscripts, *xs),
    numpy={np.einsum: _numpy_einsum},
)
def einsum(subscripts: str, *operands: Any) -> Any:
    """Products summed over axes by their letters: "ij,jk->ik" sums over j, "ii" is a trace, "..." any other axes.

    Without "->" the result has the letters that occur once, in alphabetical order.
    """
    if not isinstance(subscripts, str):
        raise ArgumentError("einsum begins with its subscripts", given=type(subscripts).__name__,
                            hint="lab.einsum('ij,jk->ik', a, b)")  # fmt: skip
    xs = [operand(x) for x in operands]
    terms, out = _read(subscripts, tuple(x.ndim for x in xs))
    pairs = [_without_repeats(t, x, subscripts) for t, x in zip(terms, xs, strict=True)]
    _lengths(tuple(t for t, _ in pairs), tuple(x.shape for _, x in pairs), "einsum")
    return contract(*(x for _, x in pairs), subscripts=",".join(t for t, _ in pairs) + "->" + out)


@lru_cache(maxsize=1024)
def _read(subscripts: str, ranks: tuple[int, ...]) -> tuple[Terms, str]:
    """The letters of each operand, repeated ones still in place, and of the result; "..." is made letters.

    Raises:
        ArgumentError, ShapeError: NumPy would refuse the subscripts, too.
    """
    inputs, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    for term in (*terms, result):
        if set(term.replace("...", "", 1)) - set(ascii_letters):
            raise ArgumentError("einsum cannot read its subscripts", given=repr(subscripts),
                                hint="letters, one '...' in a term, commas between operands, '->' once")  # fmt: skip
    if len(terms) != len(ranks):
        raise ArgumentError("einsum needs as many operands as terms", given=f"{subscripts!r} and {len(ranks)} operands",
                            hint="a comma stands between the letters of two operands")  # fmt: skip
    free = [c for c in ascii_letters if c not in subscripts]
    spread = [ndim - len(term.replace("...", "")) for term, ndim in zip(terms, ranks, strict=True)]
    for term, ndim, n in zip(terms, ranks, spread, strict=True):
        if n < 0 or (n and "..." not in term):
            raise ShapeError("einsum needs a letter for each axis", given=f"{term!r} for {ndim} axes",
                             hint="'...' stands for any axes that have no letter")  # fmt: skip
    most = "".join(free[: max(spread)])
    terms = [t.replace("...", most[len(most) - n :]) for t, n in zip(terms, spread, strict=True)]
    every = "".join(terms)
    if not arrow:
        return tuple(terms), most + "".join(sorted(c for c in set(every) - set(most) if every.count(c) == 1))
    if most and "..." not in result:
        raise ArgumentError("einsum would lose the axes of '...'", given=repr(subscripts),
                            hint="write '...' in the result, too, or letters for axes to sum over")  # fmt: skip
    out = result.replace("...", most)
    _refuse_result(subscripts, out, set(every))
    return tuple(terms), out


def _refuse_result(subscripts: str, out: str, letters: set[str]) -> None:
    if unknown := set(out) - letters:
        raise ArgumentError("einsum has no operand with a letter of the result",
                            given=f"{min(unknown)!r} in {subscripts!r}",
                            hint="each letter behind '->' stands before it, too")  # fmt: skip
    if len(set(out)) != len(out):
        raise ArgumentError("einsum gives each axis of the result one letter", given=repr(subscripts),
                            hint="lab.diag puts a vector on a diagonal")  # fmt: skip


def _without_repeats(term: str, x: Any, subscripts: str) -> tuple[str, Any]:
    """An operand with the diagonal taken of axes that share a letter."""
    for letter in _repeated(term):
        i, j = term.index(letter), term.rindex(letter)
        if x.shape[i] != x.shape[j]:
            raise ShapeError("einsum takes the diagonal of equal axes",
                             given=f"{letter!r} in {subscripts!r} is {x.shape[i]} and {x.shape[j]}",
                             hint="give axes that differ letters that differ")  # fmt: skip
        x = diagonal(x, 0, i, j)
        term = term[:i] + term[i + 1 : j] + term[j + 1 :] + letter
    return term, x


def _repeated(term: str) -> Iterator[str]:
    """Each letter as often as it is met again."""
    return (c for i, c in enumerate(term) if c in term[:i])
