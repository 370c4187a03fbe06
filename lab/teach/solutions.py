"""A right answer to every exercise, by name: for instructors, and for the tests that run each lesson with them."""

from __future__ import annotations

SOLUTIONS: dict[str, str] = {
    "multiply_rule": """\
def multiply_rule(ct, x, y):
    return ct * y, ct * x
""",
    "training_loop": """\
def training_loop(loss, optimizer, n_steps):
    for _ in range(n_steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
""",
    "forward_difference": """\
def forward_difference(f, x, h):
    return (f(x + h) - f(x)) / h
""",
    "central_difference": """\
def central_difference(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)
""",
    "richardson": """\
def richardson(whole, half):
    return (4 * half - whole) / 3
""",
    "softmax_rule": """\
def softmax_rule(p, ct):
    return p * (ct - (ct * p).sum())
""",
    "Value": """\
class Value:
    def __init__(self, data, parents=(), rule=lambda ct: ()):
        self.data, self.grad = data, 0.0
        self.parents, self.rule = parents, rule

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), lambda ct: (ct, ct))

    def __mul__(self, other):
        return Value(self.data * other.data, (self, other), lambda ct: (ct * other.data, ct * self.data))
""",
    "backward_order": """\
def backward_order(root):
    order = []

    def visit(value):
        if value not in order:
            for parent in value.parents:
                visit(parent)
            order.append(value)

    visit(root)
    return order[::-1]
""",
    "walk": """\
def walk(order):
    order[0].grad = 1.0
    for value in order:
        for parent, part in zip(value.parents, value.rule(value.grad)):
            parent.grad = parent.grad + part
""",
    "unbroadcast": """\
def unbroadcast(ct, shape):
    while ct.ndim > len(shape):
        ct = ct.sum(axis=0)
    for axis, n in enumerate(shape):
        if n == 1:
            ct = ct.sum(axis=axis, keepdims=True)
    return ct
""",
    "backward": """\
def backward(root):
    order, todo = {}, [(root, False)]
    while todo:
        value, parents_are_done = todo.pop()
        if parents_are_done:
            order[value] = True
        elif value not in order:
            todo.append((value, True))
            todo.extend((parent, False) for parent in value.parents)

    for value in order:
        if value.parents:
            value.grad = 0.0
    root.grad = 1.0
    for value in reversed(order):
        for parent, part in zip(value.parents, value.rule(value.grad)):
            parent.grad = parent.grad + part
""",
    "Dual": """\
class Dual:
    def __init__(self, value, tangent=0.0):
        self.value, self.tangent = value, tangent

    def __add__(self, other):
        return Dual(self.value + other.value, self.tangent + other.tangent)

    def __mul__(self, other):
        return Dual(self.value * other.value, self.tangent * other.value + self.value * other.tangent)

    def sin(self):
        return Dual(np.sin(self.value), np.cos(self.value) * self.tangent)
""",
    "jacobian": """\
def jacobian(f, x):
    tangents = [lab.jvp(f, (x,), (direction,))[1].numpy() for direction in np.eye(x.size)]
    return np.stack(tangents, axis=1)
""",
    "hvp": """\
def hvp(f, x, v):
    return lab.jvp(lab.grad(f), (x,), (v,))[1]
""",
    "my_init": """\
def my_init(n_in, n_out, rng):
    return (2 / n_in) ** 0.5 * rng.normal(size=(n_in, n_out))
""",
    "dead_share": """\
def dead_share(outputs):
    return (outputs == 0).all(axis=0).mean()
""",
    "mean_loss": """\
def mean_loss(loss_of, batches):
    total = 0.0
    for batch in batches:
        total = total + loss_of(batch).item()
    return total / len(batches)
""",
    "my_checkpoint": """\
def my_checkpoint(f):
    def forward(*args):
        return f(*args), args

    def backward(args, ct):
        out, back = lab.vjp(f, *args)
        return back(ct)

    return lab.custom_vjp(f).defvjp(forward, backward)
""",
    "most_held": """\
def most_held(n, k):
    return k + n // k
""",
    "my_first_plan": """\
def my_first_plan(rank, world_size, n_chunks):
    for peer in range(1, world_size):
        if rank == peer:
            yield Send(0, 0, n_chunks)
        if rank == 0:
            yield Recv(peer, 0, n_chunks, reduce=True)
    for peer in range(1, world_size):
        if rank == 0:
            yield Send(peer, 0, n_chunks)
        if rank == peer:
            yield Recv(0, 0, n_chunks, reduce=False)
""",
    "my_all_reduce": """\
def my_all_reduce(rank, world_size, n_chunks):
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(world_size - 1):
        mine, theirs = (rank - step) % n_chunks, (rank - step - 1) % n_chunks
        yield Send(right, mine, mine + 1), Recv(left, theirs, theirs + 1, reduce=True)
    for step in range(world_size - 1):
        mine, theirs = (rank + 1 - step) % n_chunks, (rank - step) % n_chunks
        yield Send(right, mine, mine + 1), Recv(left, theirs, theirs + 1, reduce=False)
""",
    "bubble": """\
def bubble(n_ranks, n_micro):
    return (n_ranks - 1) / (n_micro + n_ranks - 1)
""",
    "my_schedule": """\
def my_schedule(rank, n_ranks, n_micro):
    warmup = min(n_ranks - rank - 1, n_micro)
    for m in range(warmup):
        yield Action("F", rank, m)
    for m in range(n_micro - warmup):
        yield Action("F", rank, warmup + m)
        yield Action("B", rank, m)
    for m in range(n_micro - warmup, n_micro):
        yield Action("B", rank, m)
""",
}
"""Source text of each solution: it replaces the stub's cell."""
