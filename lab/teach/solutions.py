"""A right answer to every exercise, by name: for instructors, and for the tests that run each lesson with them."""

from __future__ import annotations

from lab.teach.rank_solutions import ON_RANKS

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
    "linear_backward": """\
def linear_backward(ct, x, w):
    return ct @ w.T, x.T @ ct, ct.sum(axis=0)
""",
    "run_graph": """\
def run_graph(fetches, feed):
    values = dict(feed)

    def value_of(node):
        if node not in values:
            values[node] = node.op(*[value_of(parent) for parent in node.inputs])
        return values[node]

    return [value_of(node) for node in fetches]
""",
    "one_step": """\
def one_step(loss):
    slopes_of = lab.value_and_grad(loss)

    def step(weights, rate, *batch):
        value, slopes = slopes_of(weights, *batch)
        return value, [w - rate * s for w, s in zip(weights, slopes)]

    return lab.jit(step, executor="compiled")
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
    "traced": """\
def traced(f):
    tapes = []

    def call(x):
        for tape in tapes:
            if tape.holds(x):
                return tape.run(x)
        tapes.append(Tape(f, x))
        return tapes[-1].run(x)

    return call
""",
    "halvings": """\
def halvings(x):
    def test(carry):
        return carry[0] > 1.0

    def body(carry):
        return carry[0] / 2.0, carry[1] + 1.0

    return lab.while_loop(test, body, (x, 0.0))
""",
    "cache_key": """\
def cache_key(args):
    def kind(a):
        if isinstance(a, np.ndarray):
            return a.shape, a.dtype.str
        return type(a) if type(a) in (int, float) else (type(a), a)

    return tuple(kind(a) for a in args)
""",
    "critical_path": """\
def critical_path(needs, costs):
    def cost(chain):
        return sum(costs[k] for k in chain)

    chains = []
    for k, waits in enumerate(needs):
        before = max((chains[j] for j in waits), key=cost, default=[])
        chains.append([*before, k])
    return max(chains, key=cost)
""",
    "list_schedule": """\
def list_schedule(needs, costs, priority, n_threads):
    free = [0] * n_threads
    places, ends = {}, {}
    while len(places) < len(needs):
        now = min(free)
        thread = free.index(now)
        done = {k for k in ends if ends[k] <= now}
        ready = [k for k in range(len(needs)) if k not in places and done.issuperset(needs[k])]
        if ready:
            k = max(ready, key=lambda k: priority[k])
            places[k] = thread, now
            free[thread] = ends[k] = now + costs[k]
        else:
            free[thread] = min(end for end in ends.values() if end > now)
    return [places[k] for k in range(len(needs))]
""",
    "step_ms": """\
def step_ms(load, preprocess, compute, depth):
    if depth == 0:
        return load + preprocess + compute
    return max(load + preprocess, compute)
""",
    "dead_code": """\
def dead_code(graph):
    read, kept = set(graph.outputs), []
    for e in reversed(graph.equations):
        if any(v in read for v in e.outs):
            kept.append(e)
            read.update(e.inputs)
    return replace(graph, equations=tuple(reversed(kept)))
""",
    "common": """\
def common(graph):
    first, stands, kept = {}, {}, []
    for e in graph.equations:
        now = replace(e, inputs=tuple(stands.get(a, a) for a in e.inputs))
        if now.key() in first:
            stands.update(zip(e.outs, first[now.key()]))
        else:
            first[now.key()] = e.outs
            kept.append(now)
    outputs = tuple(stands.get(a, a) for a in graph.outputs)
    return replace(graph, equations=tuple(kept), outputs=outputs)
""",
    "places": """\
def places(lives):
    chosen, until = [], []
    for made, last in lives:
        place = next((p for p, end in enumerate(until) if end < made), len(until))
        until[place : place + 1] = [last]
        chosen.append(place)
    return chosen
""",
    **ON_RANKS,
}
"""Source text of each solution: it replaces the stub's cell."""
