"""What is asked of a held training while the order to hold it is on its way reaches the ranks all the same."""

import math

import pytest

from lab.parallel.ranks.hops import Allowed, AtHop
from lab.parallel.training.hopping import Hopping


class Asked(Hopping):
    """Somebody asks for more in the middle of the order; what is said to ranks is kept."""

    def __init__(self, ask):
        super().__init__(("hop",), self.order, self.hear)
        self.ask, self.said, self.orders, self.at = ask, [], [], []
        self.held = self.at.append

    def order(self, kind, value):
        self.orders.append((kind, value))
        self.ask(self)

    def hear(self, word):
        self.said.append(word)

    def allowed(self, hold):
        """As many steps as ranks that are in this hold know to be allowed."""
        return max((word.n_steps for word in self.said if word.hold == hold), default=0)


def test_a_second_click_while_the_order_is_on_its_way_lets_a_second_step_pass():
    hopping = Asked(lambda hopping: hopping.step(1, "hop"))
    hopping.step(1, "hop")
    hopping.begin(1)
    assert hopping.orders == [("within", 1)]
    assert hopping.allowed(1) == 2
    hopping.heard(AtHop(1, 0, "all_reduce", "ring", 1, 6, 1.0))
    assert (hopping.is_held, hopping.at) == (False, [])  # more is allowed than rank 0 knew
    hopping.heard(AtHop(1, 0, "all_reduce", "ring", 2, 6, 2.0))
    assert hopping.is_held


@pytest.mark.parametrize("then", [lambda hopping: None, lambda hopping: hopping.step(1, "hop")])
def test_who_goes_on_while_the_order_is_on_its_way_lets_all_steps_pass(then):
    def ask(hopping):
        hopping.go_on()
        then(hopping)

    hopping = Asked(ask)
    hopping.step(1, "hop")
    hopping.begin(1)
    assert hopping.allowed(1) == math.inf


def test_a_hold_is_ordered_once_and_taken_back_once():
    hopping = Asked(lambda hopping: None)
    hopping.begin(1)
    hopping.step(3, "hop")
    for step in (2, 3):
        hopping.begin(step)
    hopping.go_on()
    for step in (4, 5):
        hopping.begin(step)
    assert hopping.orders == [("within", 1), ("within", 0)]
    assert hopping.said == [Allowed(1, 3.0), Allowed(1, math.inf)]
