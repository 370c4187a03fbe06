"""Some of the ranks as a group: its name, its members, and numbers of calls that no other group has.

A group is made without a word to anybody; that its members agree is seen in its first call, whose text has its name.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lab.errors import ArgumentError
from lab.parallel.ranks.operands import whole_number
from lab.parallel.transport.wire import COUNT_BITS
from lab.words import shown

SHOWN = 6
"""Members that the name of a group lists."""


class Group(NamedTuple):
    """Who calls together.

    Attributes:
        name: "" for all ranks of the launch.
        ranks: the members by their numbers in the launch, ascending.
        first: number of its first call; those of two groups are apart.
    """

    name: str
    ranks: tuple[int, ...]
    first: int

    @property
    def words(self) -> str:
        """What the text of its calls ends with."""
        return f" in group {self.name}" if self.name else ""


def all_ranks(world_size: int) -> Group:
    """The group of all."""
    return Group("", tuple(range(world_size)), 0)


def group_of(ranks: Sequence[int], name: str, made: Counter[tuple[str, tuple[int, ...]]]) -> Group:
    """A group of these ranks of the launch; one with the same members and name is another, and gets other numbers.

    Args:
        made: how often this rank has made each group, counted here.

    Example:
        >>> made = Counter()
        >>> one, two = group_of((0, 2), "", made), group_of((0, 2), "", made)
        >>> one.name, two.name, one.first != two.first
        ('of ranks 0, 2', 'of ranks 0, 2 (2)', True)
    """
    members = tuple(ranks)
    name = name or members_in_words(members)
    made[name, members] += 1
    n = made[name, members]
    mark = zlib.crc32(repr((name, members, n)).encode()) >> 1 | 1  # 31 bits, never 0, which is all ranks
    return Group(name if n == 1 else f"{name} ({n})", members, mark << COUNT_BITS)


def members_in_words(ranks: Sequence[int]) -> str:
    """The name of a group that was given none.

    Example:
        >>> members_in_words([0, 2]), members_in_words(range(8)), members_in_words([0, 1, 2, 3, 5, 7, 9])
        ('of ranks 0, 2', 'of ranks 0 to 7', 'of 7 ranks: 0, 1, 2, 3, 5, ... 9')
    """
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"of ranks {ranks[0]} to {ranks[-1]}"
    if len(ranks) > SHOWN:
        return f"of {len(ranks)} ranks: {', '.join(map(str, ranks[: SHOWN - 1]))}, ... {ranks[-1]}"
    return f"of rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"


def require_members(ranks: object, rank: int, world_size: int) -> list[int]:
    """The members of a group that `rank` makes.

    Raises:
        ArgumentError: they are no ranks, not ascending, one stands there twice, or `rank` is none of them.

    Example:
        >>> require_members([2, 0], 0, 4)
        Traceback (most recent call last):
        lab.errors.ArgumentError: the ranks of a group ascend
        given: ranks=[2, 0]
        hint:  group([0, 2]); the first is rank 0 of the group
    """
    if isinstance(ranks, str) or not isinstance(ranks, Iterable):
        raise ArgumentError("a group is made of ranks", given=f"ranks={shown(ranks)}", hint="group([0, 2])")
    members = [whole_number(member, "rank") for member in ranks]
    given = f"ranks={shown(members)}"
    if not members or not all(0 <= member < world_size for member in members):
        raise ArgumentError("a group is made of ranks that are there", given=f"{given}, world_size={world_size}",
                            hint="ranks are 0 to world_size - 1")  # fmt: skip
    if len(set(members)) < len(members):
        twice = next(member for member in members if members.count(member) > 1)
        raise ArgumentError(f"rank {twice} is in the group twice", given=given, hint=f"group({sorted(set(members))})")
    if members != sorted(members):
        raise ArgumentError("the ranks of a group ascend", given=given,
                            hint=f"group({sorted(members)}); the first is rank 0 of the group")  # fmt: skip
    if rank not in members:
        raise ArgumentError(f"rank {rank} makes a group that it is not in", given=given,
                            hint="only members call group(...); split(color) is called by all")  # fmt: skip
    return members
