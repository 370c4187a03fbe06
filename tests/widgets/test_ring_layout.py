"""Where ranks stand: nobody covers anybody, neighbours are beside each other, arrows cross no card."""

from __future__ import annotations

import itertools
import math

import pytest

from widgets.layout.ring import along, bends, hub_of, ring, star

CARD, GAP = (200.0, 120.0), (60.0, 50.0)


def overlapping(centres):
    return [
        (a, b)
        for a, b in itertools.combinations(range(len(centres)), 2)
        if abs(centres[a][0] - centres[b][0]) < CARD[0] and abs(centres[a][1] - centres[b][1]) < CARD[1]
    ]


def inside(circle):
    return all(
        CARD[0] / 2 <= x <= circle.width - CARD[0] / 2 and CARD[1] / 2 <= y <= circle.height - CARD[1] / 2
        for x, y in circle.centres
    )


@pytest.mark.parametrize("n", [*range(1, 20), 33, 64])
def test_cards_on_a_ring_cover_nobody_and_stay_inside(n):
    circle = ring(n, CARD, GAP)
    assert len(circle.centres) == n
    assert overlapping(circle.centres) == []
    assert inside(circle)


@pytest.mark.parametrize("n", range(2, 9))
def test_ranks_on_a_ring_go_clockwise_and_neighbours_are_as_near_as_can_be(n):
    centres = ring(n, CARD, GAP).centres
    area = sum(a[0] * b[1] - b[0] * a[1] for a, b in itertools.pairwise([*centres, centres[0]]))
    assert area > 0 or n == 2  # y runs downwards, so positive is clockwise
    for a, b in itertools.pairwise([*centres, centres[0]]):
        assert abs(a[0] - b[0]) <= CARD[0] + GAP[0]
        assert abs(a[1] - b[1]) <= CARD[1] + GAP[1]


@pytest.mark.parametrize("n", range(3, 9))
@pytest.mark.parametrize("hub", [0, 2])
def test_the_hub_of_a_star_stands_above_all_others(n, hub):
    circle = star(n, hub, CARD, GAP)
    assert overlapping(circle.centres) == []
    assert inside(circle)
    assert all(y > circle.centres[hub][1] for rank, (_, y) in enumerate(circle.centres) if rank != hub)


def crossed(way, centres, ends):
    """Cards on the way, looked for at many points of it."""
    found = set()
    for (ax, ay), (bx, by) in itertools.pairwise(way):
        for k in range(201):
            x, y = ax + (bx - ax) * k / 200, ay + (by - ay) * k / 200
            found |= {
                rank
                for rank, (cx, cy) in enumerate(centres)
                if rank not in ends and abs(x - cx) < CARD[0] / 2 and abs(y - cy) < CARD[1] / 2
            }
    return found


@pytest.mark.parametrize("n", range(2, 9))
def test_an_arrow_between_any_two_ranks_crosses_no_third(n):
    circle = ring(n, CARD, GAP)
    for a, b in itertools.permutations(range(n), 2):
        way = [circle.centres[a], *bends((a, b), circle, CARD), circle.centres[b]]
        assert crossed(way, circle.centres, {a, b}) == set()


@pytest.mark.parametrize("n", range(3, 9))
def test_the_arrows_of_a_star_cross_nobody(n):
    circle = star(n, 0, CARD, GAP)
    for rank in range(1, n):
        for pair in ((0, rank), (rank, 0)):
            way = [circle.centres[pair[0]], *bends(pair, circle, CARD, hub=0), circle.centres[pair[1]]]
            assert crossed(way, circle.centres, set(pair)) == set()


def test_two_arrows_there_and_back_take_different_sides():
    circle = ring(4, CARD, GAP)
    for pair in ((0, 1), (0, 3)):
        [there], [back] = (bends(p, circle, CARD, both=True) for p in (pair, pair[::-1]))
        assert math.dist(there, back) >= 28


def test_a_chain_has_its_middle_as_hub_and_a_ring_has_none():
    assert hub_of({(0, 1), (1, 2)}) == 1
    assert hub_of({(k, (k + 1) % 5) for k in range(5)}) is None
    assert hub_of(set()) is None


def test_a_level_way_has_its_ends_and_no_long_stretch():
    way = along(300.0, -20.0, 7.0)
    assert (way[0], way[-1]) == ((300.0, 7.0), (-20.0, 7.0))
    assert max(math.dist(a, b) for a, b in itertools.pairwise(way)) <= 45
