"""Programs that are written once, for whoever meets along an axis: a batch axis, threads, worker processes.

Inside one member they add in a settled order, so that every world can give the same bits.
"""

import lab

RANKS = "ranks"


def total(x):
    """The sum of all entries of a matrix, row by row."""
    return lab.add_rows(lab.add_rows(x))


def mean_of_gradients(x):
    """All-reduce: what data parallelism does."""
    return lab.all_reduce(lab.sin(x) * x, axis_name=RANKS, op="mean")


def sharded(x):
    """Reduce-scatter, a step on the own shard, all-gather: what ZeRO does."""
    shard = lab.reduce_scatter(x * x, axis_name=RANKS)
    return lab.all_gather(shard * 0.1 - shard, axis_name=RANKS, tiled=True)


def around_the_ring(x):
    """Everybody's x seen one after the other, without anybody holding all."""
    seen, here = x * 0.0, x
    for place in range(lab.axis_size(RANKS)):
        seen = seen + here * (place + 1.0)
        here = lab.shift(here, axis_name=RANKS)
    return seen + here * lab.axis_index(RANKS)


def transposed(x):
    """All-to-all there and, after something was done, back."""
    columns = lab.all_to_all(x, axis_name=RANKS)
    return columns, lab.all_to_all(lab.tanh(columns), axis_name=RANKS)


def gradient_step(x):
    """A step of every rank's copy with the mean of all ranks' gradients."""
    w = lab.broadcast(x[0], root=1, axis_name=RANKS)
    gradient = lab.grad(lambda w: total((x * w - 1.0) ** 2))(w)
    return w - 0.05 * lab.all_reduce(gradient, axis_name=RANKS, op="mean")


def through_collectives(x):
    """The gradient of a loss that all ranks have a part in: backward meets, too."""

    def loss(x):
        centred = x - lab.all_reduce(x, axis_name=RANKS, op="mean")
        spread = lab.all_gather(lab.shift(centred, by=-1, axis_name=RANKS) * x, axis_name=RANKS)
        return total(lab.add_rows(spread) * lab.permute(x, pairs=((0, 1), (1, 0)), axis_name=RANKS))

    return lab.grad(loss)(x)


def two_axes(x):
    """Rows of a matrix on each rank as a second, mapped axis: one meets along both."""

    def of_row(row):
        both = lab.all_reduce(lab.all_reduce(row * row, axis_name="rows"), axis_name=RANKS)
        return row / both + lab.axis_index("rows") * lab.axis_index(RANKS)

    return lab.vmap(of_row, axis_name="rows")(x)


def in_a_graph(x):
    """The same as a graph that is made once and run twice."""
    step = lab.jit(around_the_ring)
    return step(x), lab.jit(through_collectives)(step(x))


PROGRAMS = {
    f.__name__: f
    for f in (
        mean_of_gradients, sharded, around_the_ring, transposed, gradient_step, through_collectives, two_axes,
        in_a_graph,
    )
}  # fmt: skip
