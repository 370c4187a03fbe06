"""A module as a tree: its parameters are leaves, so that grad, jit and vmap take a model as any container.

Taken apart, a Skeleton is left; put together again, it is a copy of the module that holds other leaves: tracers while
a transform runs, gradients as a result.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from typing import Any

from lab import tree
from lab.autograd import Tensor
from lab.nn.module import Module


class Skeleton:
    """A module without its parameters. Two are equal if their modules were made alike: classes, options, structure."""

    __slots__ = ("key", "module", "names")

    def __init__(self, module: Module) -> None:
        named = dict(module.named_parameters())
        self.module, self.names = module, tuple(named)
        self.key = _key(module, {id(p) for p in named.values()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Skeleton) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _key(part: Any, parameters: set[int]) -> Hashable:
    if isinstance(part, Module):
        inner = ((name, _key(x, parameters)) for name, x in vars(part).items()
                 if name not in {"path", "_leaves", *part.buffers})  # fmt: skip
        # What is compiled holds the numbers of the buffers: where they have changed the structure is another one.
        return type(part), tuple(inner), tuple(getattr(part, name).value.tobytes() for name in part.buffers)
    if isinstance(part, list | tuple):
        return type(part), tuple(_key(x, parameters) for x in part)
    if isinstance(part, dict):
        return tuple((name, _key(x, parameters)) for name, x in part.items())
    if isinstance(part, Tensor):
        return "parameter" if id(part) in parameters else id(part)
    return part if isinstance(part, Hashable) else id(part)


def _flatten(module: Module) -> tuple[list[tuple[str, Any]], Skeleton]:
    # What was put together holds leaves that need not be parameters: it knows them, and the skeleton that it came from.
    skeleton, leaves = vars(module).get("_leaves") or (None, ())
    if skeleton is None:
        skeleton, leaves = Skeleton(module), module.parameters()
    return [(f".{name}", leaf) for name, leaf in zip(skeleton.names, leaves, strict=True)], skeleton


def _rebuild(skeleton: Skeleton, leaves: Sequence[Any]) -> Module:
    old = dict(skeleton.module.named_parameters())
    made: dict[int, Any] = {id(old[name]): leaf for name, leaf in zip(skeleton.names, leaves, strict=True)}
    copied: Module = _copied(skeleton.module, made)
    object.__setattr__(copied, "_leaves", (skeleton, tuple(leaves)))
    return copied


def _copied(part: Any, made: dict[int, Any]) -> Any:
    """A copy of a part with the leaves in `made` instead of parameters; what is shared stays shared."""
    if id(part) in made:
        return made[id(part)]
    if isinstance(part, Module):
        made[id(part)] = found = copy.copy(part)
        vars(found).update({name: _copied(x, made) for name, x in vars(part).items()})
        return found
    if isinstance(part, list | tuple):
        return type(part)(_copied(x, made) for x in part)
    if isinstance(part, dict):
        return {name: _copied(x, made) for name, x in part.items()}
    return part


tree.register(Module, _flatten, _rebuild)
