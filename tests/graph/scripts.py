"""Small functions as users write them, with arguments: each gives by `lab.script` what it gives as Python."""

# ruff: noqa: B905, PLR0133, PLR1730, PT018, SIM108 - each way to say a thing is to be read, the longer ones as well

import math

import numpy as np

import lab

SCALE = 2.0
TABLE = np.array([10.0, 20.0, 30.0, 40.0])
WEIGHT = lab.tensor([[1.0, 2.0], [3.0, 4.0]])
LAYERS = [lab.tensor(np.eye(2)), lab.tensor(2.0 * np.eye(2))]
PARAMS = {"w": lab.tensor([1.0, -1.0]), "b": lab.tensor(0.5)}
X = np.array([1.0, -2.0])
F32 = np.array([1.0, -2.0, 3.0], "float32")


def straight(x):
    """A docstring."""
    y: object = lab.tanh(x) * SCALE
    return y + np.sin(x)


def one_if(x):
    if lab.sum(x) > 0.0:
        y = x * 2.0
    else:
        y = -x
    return y


def if_without_else(x):
    y = x
    if x[0] > 0.0:
        y = y * 10.0
    return y


def elif_chain(x):
    if x > 1.0:
        kind = 1
    elif x > 0.0:
        kind = 2
    else:
        kind = 3
    return kind * x


def early_return(x):
    if x < 0.0:
        return 0.0 * x
    y = x * x
    if y > 4.0:
        return y - 4.0
    return y


def nested_returns(x, y):
    if x > 0.0:
        if y > 0.0:
            return x * y
        x = x + 1.0
    else:
        y = y - 1.0
    return x + y


def number_for_tensor(x):
    if lab.max(x) > 1.0:
        return x * 1
    return x * 2.5


def truth_of_a_number(x):
    if x:
        return x + 1.0
    return x - 1.0


def plain_if(x, double=True):
    if double:
        return x * 2.0
    raise ValueError("not double")


def while_of_data(x):
    n = 0
    while x > 1.0:
        x = x / 2.0
        n = n + 1
    return x, n


def collatz(n):
    turns = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        turns += 1
    return turns


def newton(x):
    guess = 1.0
    while abs(guess * guess - x) > 1e-9:
        guess = 0.5 * (guess + x / guess)
    return guess


def error_first(x):
    error, n = 1.0, 0
    while error > 0.01 and n < 50:
        new = 0.5 * (x + 2.0 / x)
        error = lab.absolute(new - x)
        x = new
        n += 1
    return x, n


def gcd(a, b):
    while b > 0:
        a, b = b, a % b
    return a


def never(x):
    while x > 100.0:
        x = x - 1.0
    return x


def for_of_range(x):
    total = 0
    for i in range(5):
        total = total + x * i
    return total


def for_of_argument(x, n):
    total = 0.0
    for i in range(1, n, 2):
        total += x[0] * i
    return total


def for_backwards(x, n):
    for i in range(n, 0, -1):
        x = x * 0.5 + i
    return x


def range_of_a_tensor(x):
    n = lab.sum((x > 0.0).astype("int64"))
    y = x
    for _ in range(n):
        y = y * 3.0
    return y


def nested_loops(x, n):
    total = 0.0 * x
    for i in range(n):
        for j in range(i):
            total = total + x * (i - j)
    return total


def if_in_a_loop(x, n):
    even, odd = x, x
    for i in range(n):
        if i % 2 == 0:
            even = even + i
        else:
            odd = odd * 2.0
    return even, odd


def while_in_a_loop(x):
    for i in range(3):
        while x > i:
            x = x - 0.75
    return x


def index_by_turn(x):
    best = x[0]
    for i in range(2):
        if x[i] > best:
            best = x[i]
    return best


def table_by_turn(x, n):
    for i in range(n):
        x = x + TABLE[i]
    return x


def rows_of_a_tensor(x):
    total = 0.0
    for row in x:
        total = total + lab.sum(row) * row[0]
    return total


def growing(x):
    y = x[:1]
    for i in range(2):
        y = lab.concatenate([y, x[i:] * 2.0])
    return y


def over_a_list(x):
    for layer in LAYERS:
        x = layer @ x
    return x


def layer_by_turn(x):
    for i in range(2):
        x = LAYERS[i] @ x + lab.sum(x, axis=i - 1)
    return x


def shape_by_turn(x):
    for n in range(1, 3):
        x = lab.tile(x, (n,)).reshape(n, -1).sum(axis=0)
    return x


def over_a_zip(x):
    for a, (k, b) in zip([1.0, 2.0], enumerate([3.0, 4.0])):
        x = x * a + b * k
    return x


def set_in_the_loop(x):
    for i in range(3):
        y = x * i
    return y + i


def number_stays_weak(x):
    k = 0.5
    while lab.sum(x * k) < 10.0:
        k = k * 2
    return x * k


def tensor_then_number(x):
    y = x
    while lab.sum(x) < 5.0:
        x = x + 1.0
        y = 1 if lab.sum(x) < 2.0 else x
    return x * y


def total_takes_the_dtype(x):
    total = 0
    for i in range(3):
        total = total + x[i]
    return total


def whole_numbers(x, n):
    k = n * 3 - 1
    for i in range(4):
        k = k + i // 2 - (i + n) % 3
    return x * k


def and_or_not(x, y):
    if x > 0.0 and not y > 0.0:
        return x
    if x > 5.0 or y > 5.0:
        return y
    return x + y


def guarded_index(x, n):
    i = 0
    while i < n and x[i] != 0.0:
        i += 1
    return i


def chained(x):
    return 1.0 if 0.0 < x < 1.0 <= 3.0 else 0.0


def choice(x):
    return lab.exp(x) if lab.all(x < 1.0) else x


def either(x, y):
    return (x or y) + (x and y)


def helper(a, b=3.0):
    if a > b:
        return a - b
    return b - a


def calls_a_helper(x):
    return helper(x) + helper(x, b=1.0)


class Model:
    """An object with parameters."""

    def __init__(self):
        self.w = lab.tensor(3.0)

    def forward(self, x):
        """A branch on data."""
        if x > 0.0:
            return self.w * x
        return x


MODEL = Model()


def calls_a_method(x):
    return MODEL.forward(x) + MODEL.forward(-x)


@lab.script
def other_script(x):
    while x > 1.0:
        x = x - 1.0
    return x


def calls_a_script(x):
    return other_script(x) * 2.0


def gradient_inside(x):
    return lab.grad(lab.sin)(x) + lab.vmap(straight)(lab.stack([x, x]))[0]


def containers(x):
    a = {"x": x, "pair": (x, [x * 2.0])}
    b, (c, d) = x, (a["pair"][1][0], a["x"])
    return {"sum": b + c, "rest": [d, (math.pi * x,)]}


def carried_container(x):
    state = (x, {"n": 0})
    while state[0] > 1.0:
        state = (state[0] / 2.0, {"n": state[1]["n"] + 1})
    return state


def parameters(x):
    if lab.sum(x) > 0.0:
        return x @ PARAMS["w"] + PARAMS["b"]
    return lab.sum(x) + 0.0


def matrices(x):
    h = lab.relu(x @ WEIGHT).T[::-1]
    return h.reshape(2, 1)[..., 0].astype("float32").sum() if h.ndim == 1 else h


def asserts(x):
    assert x.shape == (2,), f"of shape {x.shape}"
    assert isinstance(x, lab.Tensor) and x.dtype.kind in "fi"
    return x.mean()


def masks(x):
    mask = (x > 0.0) & ~(x > 5.0)
    return np.where(mask, x, 0.0), lab.any(mask) or lab.all(mask)


def flag_of_python(x):
    done, n = False, 0
    while not done:
        n = n + 1
        done = n * x > 10.0
    return n


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def unchanged_text(x):
    mode = "double"
    if x > 0.0:
        mode = "double"
    return x * 2.0 if mode == "double" else x


def dtype_of_both(x):
    if lab.sum(x) > 0.0:
        s = 0.0
    else:
        s = lab.max(x)
    return s


T = lab.tensor
CASES = [
    (straight, [T(X)]),
    (one_if, [T(X)], [T(-X)]),
    (if_without_else, [T(X)], [T(-X)]),
    (elif_chain, [2.0], [0.5], [-1.0], [T(0.5)]),
    (early_return, [-1.0], [1.5], [3.0]),
    (nested_returns, [1.0, 2.0], [1.0, -2.0], [-1.0, 2.0]),
    (number_for_tensor, [T(F32)], [T(F32 * 0)]),
    (truth_of_a_number, [0.0], [2.0], [T(0)]),
    (plain_if, [T(X)], [T(X), True]),
    (while_of_data, [T(100.0)], [0.5], [T(F32[2])]),
    (collatz, [6], [27], [1]),
    (newton, [2.0], [T(9.0)]),
    (error_first, [1.0], [T(300.0)]),
    (gcd, [48, 36], [7, 0]),
    (never, [1.0], [T(103.0)]),
    (for_of_range, [T(X)], [T(F32)], [2.0]),
    (for_of_argument, [T(X), 7], [T(F32), 1]),
    (for_backwards, [T(X), 4], [T(F32), 0]),
    (range_of_a_tensor, [T(X)], [T(F32)], [T(-F32 * F32)]),
    (nested_loops, [T(X), 5], [1.5, 0]),
    (if_in_a_loop, [T(X), 5], [T(F32), 2]),
    (while_in_a_loop, [5.0], [T(-1.0)]),
    (index_by_turn, [T(X)], [T(-X)]),
    (table_by_turn, [T(X), 3], [0.5, 4]),
    (rows_of_a_tensor, [T(np.arange(6.0).reshape(3, 2))]),
    (growing, [T(X)]),
    (over_a_list, [T(X)]),
    (layer_by_turn, [T(X)]),
    (shape_by_turn, [T(X)]),
    (over_a_zip, [T(X)]),
    (set_in_the_loop, [T(X)]),
    (number_stays_weak, [T(F32)]),
    (tensor_then_number, [T(F32[0])], [T(-1.0)], [9.0]),
    (total_takes_the_dtype, [T(F32)], [T(np.arange(3))]),
    (whole_numbers, [T(F32), 5], [T(X), -7]),
    (and_or_not, [1.0, -1.0], [1.0, 6.0], [-1.0, 2.0]),
    (guarded_index, [T(X), 2], [T([1.0, 0.0]), 2]),
    (chained, [0.5], [1.0], [T(-1.0)]),
    (choice, [T(X)], [T(X * 0.1)]),
    (either, [0.0, 2.0], [T(3.0), T(2.0)]),
    (calls_a_helper, [1.0], [T(5.0)]),
    (calls_a_method, [2.0], [T(-2.0)]),
    (calls_a_script, [3.5], [T(0.5)]),
    (gradient_inside, [T(0.3)]),
    (containers, [T(X)]),
    (carried_container, [T(9.0)]),
    (parameters, [T(X)], [T(-X)]),
    (matrices, [T(X)], [T(np.ones((3, 2)))]),
    (asserts, [T(X)]),
    (masks, [T(X)]),
    (flag_of_python, [3.0], [T(0.3)]),
    (fibonacci, [10], [0]),
    (unchanged_text, [1.0]),
    (dtype_of_both, [T(F32)], [T(-F32)]),
]
