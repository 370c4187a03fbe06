"""What a picture shows, out of the document of its page, and the same read from the events of a recording by hand.

Nothing here asks a view what it makes of events: a fold that counts wrongly should be found out.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np

from lab.events import (
    AccumulationBegun,
    AccumulationMeasured,
    ActionFinished,
    BackwardFinished,
    BackwardStarted,
    BucketStepTold,
    BucketsTimed,
    BuildMeasured,
    CacheHit,
    CallMeasured,
    CaptureCompared,
    ChoiceKnown,
    ChunkMoved,
    CostMeasured,
    EquationRan,
    ErrorMeasured,
    Evaluated,
    GraphMade,
    GraphRunBegun,
    JacobianCompared,
    LayerMeasured,
    LeafUsed,
    MeansStepped,
    MemoryPlanMade,
    MemorySampled,
    NodeVisited,
    OpBatched,
    OpRecorded,
    OrderMeasured,
    ParameterMeasured,
    PassFinished,
    PrefetchRunBegun,
    RankLost,
    RankStarted,
    Recording,
    ReplicaAdvanced,
    RootLinkBegun,
    RootLinkMeasured,
    RuleApplied,
    RunHeld,
    SlopesMeasured,
    SpreadMeasured,
    StageRan,
    StepFinished,
    SwellMeasured,
    TangentPushed,
    TimeMeasured,
    TimeSimulated,
    Traced,
    ValuePlaced,
    ValueSeen,
    WorkerHandled,
    WorkerSeen,
)
from widgets.pictures.chart import Chart
from widgets.pictures.scene import Scene
from widgets.pictures.theme import short
from widgets.views.experiments.cost import WAYS
from widgets.views.words import n_bytes, number

Drawn = dict[str, Any]
"""What READ gives."""

READ = """region => {
  const text = (g, name) => g.querySelector(`.lab-${name}`)?.textContent ?? "";
  const nodes = [...region.querySelectorAll(".lab-node[data-key]")].map(g => {
    const [, x, y] = g.getAttribute("transform").match(/translate\\((\\S+) (\\S+)\\)/).map(Number);
    const box = g.querySelector(".lab-box:not(.lab-behind)");
    const [w, h] = ["width", "height"].map(side => Number(box.getAttribute(side)));
    const said = { label: text(g, "label"), sublabel: text(g, "sublabel"), gradient: text(g, "gradient") };
    return [g.dataset.key.slice(1), { ...g.dataset, ...said, x, y, w, h, aria: g.getAttribute("aria-label") }];
  });
  const edges = [...region.querySelectorAll(".lab-edge[data-key]")].map(g => g.dataset.key.slice(1));
  const words = [...region.querySelectorAll(".lab-mark-words")].map(t => [t.dataset.key.slice(1), t.textContent]);
  const plot = region.querySelector(".lab-plot");
  const plain = values => values ? Array.from(values, v => Number.isFinite(v) || typeof v === "string" ? v : null) : [];
  const lines = [...(plot?.querySelectorAll(".scatterlayer .trace") ?? [])].map(g => {
    const d = [...g.querySelectorAll(".js-line")].map(path => path.getAttribute("d")).join(" ");  // one for each piece
    return d ? d.match(/-?[\\d.]+(e-?\\d+)?/g).map(Number) : [];
  });
  const traces = (plot?._fullData ?? []).map(trace => {
    const [ax, ay] = ["x", "y"].map(k => plot._fullLayout[`${k}axis${trace[`${k}axis`].slice(1)}`]);
    const [x, y] = [plain(trace.x), plain(trace.y)];
    const at = i => [ax.d2p(x[i]), ay.d2p(y[i])];
    const there = y.map((v, i) => i).filter(i => y[i] !== null);
    const z = Array.from(trace.z ?? [], plain);
    const ends = there.length ? [at(there[0]), at(there.at(-1))] : [];
    return { name: trace.name, type: trace.type, axis: trace.xaxis, x, y, z, ends };
  });
  const bars = [...(plot?.querySelectorAll(".barlayer .point path") ?? [])].map(path => path.getBBox().height);
  return { nodes: Object.fromEntries(nodes), edges, words: Object.fromEntries(words), traces, lines, bars,
           step: region.querySelector(".lab-step")?.textContent ?? "" };
}"""


def same_words(drawn: str, whole: str) -> bool:
    """Whether a text is drawn, perhaps cut to its room."""
    return drawn == whole or (drawn.endswith("…") and " ".join(whole.split()).startswith(drawn[:-1]))


def agree(picture: Scene | Chart, drawn: Drawn) -> None:
    """What is drawn is this picture, piece by piece."""
    if isinstance(picture, Chart):
        return agree_chart(picture, drawn)
    nodes = drawn["nodes"]
    assert nodes.keys() == {node.id for node in picture.nodes}
    for node in picture.nodes:
        there = nodes[node.id]
        assert (there["kind"], there["state"]) == (node.kind, node.state)
        for name in ("label", "sublabel", "gradient"):
            assert same_words(there[name], getattr(node, name)), (node, there)
        assert node.aria in there["aria"]
        place = [there[side] for side in "xywh"]
        assert np.allclose(place, [node.x, node.y, node.width, node.height], atol=0.11), (node, there)
    assert sorted(drawn["edges"]) == sorted(edge.id for edge in picture.edges)
    words = {mark.id: mark.text for mark in picture.marks if mark.text}
    assert drawn["words"].keys() == words.keys()
    assert all(same_words(drawn["words"][name], text) for name, text in words.items())
    return None


def agree_chart(picture: Chart, drawn: Drawn) -> None:
    traces = picture.figure.data
    assert [t["name"] for t in drawn["traces"]] == [t.name for t in traces]
    for mine, there in zip(traces, drawn["traces"], strict=True):
        for own, shown in ((mine.x, there["x"]), (mine.y, there["y"])):
            if any(isinstance(v, str) for v in shown):
                assert list(own) == shown
            else:
                assert np.allclose(np.asarray(own, float), np.array(shown, float), rtol=1e-6, equal_nan=True)
    lines = [t for t in drawn["traces"] if t["type"] == "scatter" and t["ends"]]
    plots = list(dict.fromkeys(t["axis"] for t in lines))  # the document has all of one plot before those of the next
    lines.sort(key=lambda t: plots.index(t["axis"]))
    assert len(drawn["lines"]) == len(lines)
    for there, path in zip(lines, drawn["lines"], strict=True):  # in the document the line begins and ends there
        if path:
            assert np.allclose([path[:2], path[-2:]], there["ends"], atol=0.1), there["name"]
    counts = [t.y for t in traces if t.type == "bar"]
    if counts and (tall := np.max(counts)):
        heights = np.array(drawn["bars"])
        assert np.allclose(heights / heights.max(), np.concatenate(counts) / tall, atol=0.02)


# --- straight from the recording; `k` is the stop that is shown, from 1 on, `p` how many events were folded then ---


def graph(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A box for each leaf and operation, an arrow for each operand, a scalar's value as it was seen."""
    ops, leaves = rec.columns(OpRecorded, 0, p), rec.columns(LeafUsed, 0, p)["node"].tolist()
    nodes = drawn["nodes"]
    assert {n for n, node in nodes.items() if node["kind"] != "constant"} == {*map(str, (*ops["node"], *leaves))}
    arrows = {f"{n}.{i}" for n, parents in zip(ops["node"], ops["parents"], strict=True) for i in range(len(parents))}
    assert {*drawn["edges"]} == arrows
    seen = rec.columns(ValueSeen, 0, p)
    values = {
        str(n): mean
        for n, role, shape, mean in zip(seen["node"], seen["role"], seen["shape"], seen["mean"], strict=True)
        if role == "value" and not len(shape)
    }
    assert values
    came = {str(n) for n, role in zip(seen["node"], seen["role"], strict=True) if role == "gradient"}
    assert {n for n, node in nodes.items() if node["gradient"]} == came
    assert {n: nodes[n]["sublabel"] for n in values} == {n: short(float(mean)) for n, mean in values.items()}


def twice(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A box for each leaf and operation; a frame around those that ran while a walk did, which name what is outside."""
    ops, nodes = rec.columns(OpRecorded, 0, p), drawn["nodes"]
    starts, ends = rec.columns(BackwardStarted, 0, p), rec.columns(BackwardFinished)
    within = {n: [int(r) for r, a, b in zip(starts["root"], starts["position"], ends["position"], strict=False)
                  if a < at < b] for n, at in zip(ops["node"], ops["position"], strict=True)}  # fmt: skip
    frames = {n: node for n, node in nodes.items() if node["kind"] == "frame"}
    assert frames.keys() == {f"b{r}" for roots in within.values() for r in roots}
    for n, roots in within.items():
        box = nodes[str(n)]
        inside = [name for name, f in frames.items()
                  if abs(box["x"] - f["x"]) < f["w"] / 2 and abs(box["y"] - f["y"]) < f["h"] / 2]  # fmt: skip
        assert inside == [f"b{r}" for r in roots]
    parents = dict(zip(ops["node"], ops["parents"], strict=True))
    named = {f"c{n}.{i}" for n, ps in parents.items() for i, q in enumerate(ps)
             if q >= 0 and within.get(q, []) != within[n]}  # fmt: skip
    assert {n for n, node in nodes.items() if n.startswith("c") and node["kind"] == "leaf"} == named
    assert {*drawn["edges"]} == {f"{n}.{i}" for n, ps in parents.items() for i in range(len(ps))}


def broken(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A graph, with a mark at each box of which a value or a gradient that is not finite was seen."""
    graph(rec, p, k, drawn)
    seen = rec.columns(ValueSeen, 0, p)
    rows = zip(seen["node"], seen["role"], seen["n_nonfinite"], strict=True)
    bad = {str(n) for n, role, count in rows if count and role != "contribution"}
    assert {n for n, node in drawn["nodes"].items() if node["state"] == "trouble"} == bad


def contributions(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Beside each value to which the last rule sent something: all that came back to it in this walk."""
    rules, seen = rec.columns(RuleApplied, 0, p), rec.columns(ValueSeen, 0, p)
    if not len(rules["node"]):
        assert drawn["nodes"].keys() == {"in"}
        return
    rows = zip(*(seen[name] for name in ("node", "role", "source", "argument", "mean")), strict=True)
    came = [(int(n), int(s), int(i), float(mean)) for n, role, s, i, mean in rows if role == "contribution"]
    sent = {f"{s}.{i}": (n, mean) for n, s, i, mean in came if s == rules["node"][-1]}
    assert drawn["nodes"].keys() == {"in", *sent, *(f"sum{n}" for n, _ in sent.values())}
    for name, (target, mean) in sent.items():
        assert drawn["nodes"][name]["gradient"].endswith(f"= {short(mean)}")
        total = sum(mean for n, *_, mean in came if n == target)
        assert drawn["nodes"][f"sum{target}"]["sublabel"].endswith(short(total))


def duals(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Each value that carries a tangent, with both numbers; into the newest goes an arrow for each operand."""
    told, seen = rec.columns(TangentPushed, 0, p), rec.columns(ValueSeen, 0, p)
    nodes = {n: node for n, node in drawn["nodes"].items() if node["kind"] != "constant"}
    assert nodes.keys() == {*map(str, told["node"].tolist())}
    for n, role, mean in zip(*(seen[name] for name in ("node", "role", "mean")), strict=True):
        words = {"value": nodes[str(n)]["sublabel"], "tangent": nodes[str(n)]["gradient"].removeprefix("tangent ")}
        assert words[str(role)] == short(float(mean))
    assert len(drawn["edges"]) == sum(map(len, told["parents"]))


def visits(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """How often each walk came by each node, counted row by row."""
    told = rec.columns(NodeVisited, 0, p)
    pairs = Counter(zip(np.asarray(told["order"]).tolist(), told["node"].tolist(), strict=True))
    for name, node in drawn["nodes"].items():
        assert node["sublabel"] == f"in order {pairs['topological', int(name)]}×"
        assert node["gradient"] == f"path by path {pairs['path', int(name)]}×"
    assert drawn["nodes"].keys() == {*map(str, rec.columns(NodeVisited)["node"].tolist())}


def stretched(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A row of cells for each operand: NumPy says which of them are stretched; what was sent is the sum over these."""
    ops, rules = rec.columns(OpRecorded), rec.columns(RuleApplied, 0, p)
    shapes = {n: tuple(s) for kind in (LeafUsed, OpRecorded)
              for n, s in zip(*(rec.columns(kind)[f] for f in ("node", "shape")), strict=True)}  # fmt: skip
    wide = {n: parents for n, parents in zip(ops["node"], ops["parents"], strict=True)
            if len({shapes[q] for q in parents}) > 1}  # fmt: skip
    told = [n for n in (rules["node"] if len(rules["node"]) else rec.columns(OpRecorded, 0, p)["node"]) if n in wide]
    rows, cells = wide[told[-1]], {n: c for n, c in drawn["nodes"].items() if "." in n}
    out = shapes[told[-1]]
    for i, q in enumerate(rows):
        steps = np.broadcast_to(np.empty(shapes[q]), out).strides
        now = [cells[f"o{i}.{axis}"]["state"] == "active" for axis in range(len(out))]
        assert now == [step == 0 and n > 1 for step, n in zip(steps, out, strict=True)]
    seen = rec.columns(ValueSeen, 0, p)
    for n, source, i, shape in zip(*(seen[f] for f in ("node", "source", "argument", "shape")), strict=True):
        if source == told[-1]:
            assert drawn["nodes"][f"o{i}"]["gradient"]
            assert tuple(shape) == shapes[n]


SIDES = "one", "all"


def layers(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """The first measured step and the newest, each with a line for each statistic; shares of dead units as bars."""
    told = rec.columns(LayerMeasured, 0, p)
    steps = np.asarray(told["step"])
    lines = {(t["name"], i) for i, t in enumerate(drawn["traces"]) if t["type"] == "scatter"}
    assert {name for name, _ in lines} == {f"step {steps[0]}", f"step {steps[-1]}"}
    for name in {f"step {steps[0]}", f"step {steps[-1]}"}:
        mine = steps == int(name.split()[1])
        wanted = [np.asarray(told[field])[mine] for field in ("deviation", "gradient_norm", "mean")]
        shown = [t["y"] for t in drawn["traces"] if t["name"] == name]
        assert np.allclose(shown, wanted, rtol=1e-5)
    (bars,) = [t["y"] for t in drawn["traces"] if t["type"] == "bar"]
    mine = steps == steps[-1]
    assert np.allclose(bars, 100 * np.asarray(told["n_dead"])[mine] / np.asarray(told["n_units"])[mine])


def mapped(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A row for each value: its axes, and with that of the members in front of those that are not shared."""
    told, nodes = rec.columns(OpBatched, 0, p), drawn["nodes"]
    rows = zip(*(told[name].tolist() for name in ("node", "size", "axis")), told["shape"], strict=True)
    for node, size, axis, shape in rows:
        words = {side: {n: c["label"] for n, c in nodes.items() if n.startswith(f"{node}{side}.")} for side in SIDES}
        cells = {side: [*there.values()] for side, there in words.items()}
        assert cells["one"] == ([*map(str, shape)] or ["scalar"])
        members = [str(size)] if axis >= 0 else []
        assert cells["all"] == ([*members, *map(str, shape)] or ["scalar"])
        assert [c["kind"] for n, c in nodes.items() if n == f"{node}all.0"] == ["group" if members else "constant"]
    assert len(drawn["edges"]) == len(told["node"])


def grouped(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Each operation is in one box; one that has a box of its own has a gradient as soon as one came."""
    boxes = drawn["nodes"].values()
    held = sum(int(node["sublabel"].split()[0]) for node in boxes if node["kind"] == "group")
    assert held + sum(node["kind"] in ("op", "output") for node in boxes) == len(rec.positions(OpRecorded))
    seen = rec.columns(ValueSeen, 0, p)
    came = {str(n) for n, role in zip(seen["node"], seen["role"], strict=True) if role == "gradient"}
    own = {n: bool(node["gradient"]) for n, node in drawn["nodes"].items() if n.isdigit()}
    assert own == {n: n in came for n in own}


def why(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """The entry that is asked about is the largest of its gradient."""
    leaves, seen = rec.columns(LeafUsed), rec.columns(ValueSeen)
    node = leaves["node"][list(leaves["name"]).index("0.weight")]
    at = np.flatnonzero((np.asarray(seen["role"]) == "gradient") & (seen["node"] == node))[-1]
    gradient = seen["value"][int(at)]
    entry = np.unravel_index(np.abs(gradient).argmax(), gradient.shape)
    start = next(n for n in drawn["nodes"].values() if n["kind"] == "leaf")
    assert start["label"] == f"0.weight[{', '.join(map(str, entry))}]"
    assert start["sublabel"] == f"gradient {short(float(gradient[entry]))}"


def difference(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """The first leaf is the first whose values differ: the two networks are from two seeds."""
    unlike = [node for node in drawn["nodes"].values() if node["state"] == "trouble"]
    name = rec.columns(LeafUsed)["name"][0]
    assert [node["label"].startswith(f"value of leaf {name}: ") for node in unlike] == [True, True]


def loss(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """The loss of every step and of every test."""
    traces = {t["name"]: t for t in drawn["traces"]}
    steps, tests = rec.columns(StepFinished, 0, p), rec.columns(Evaluated, 0, p)
    assert traces["batch"]["x"] == steps["step"].tolist()
    assert np.allclose(traces["batch"]["y"], steps["loss"], rtol=1e-6)
    for what in ("loss", "accuracy") if len(tests["step"]) else ():
        assert traces[f"test {what}"]["x"] == tests["step"].tolist()
        assert np.allclose(traces[f"test {what}"]["y"], tests[what], rtol=1e-6)


def gradients(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """The norm of every measurement, and the histogram of the last of the first parameter."""
    rows = rec.columns(ParameterMeasured, 0, p)
    own = np.asarray(rows["role"]) == "gradient"
    for trace in drawn["traces"][:-1]:
        mine = np.flatnonzero(own & (np.asarray(rows["name"]) == trace["name"]))
        assert trace["x"] == rows["step"][mine].tolist()
        assert np.allclose(trace["y"], rows["norm"][mine], rtol=1e-6)
    first = np.flatnonzero(own & (np.asarray(rows["name"]) == drawn["traces"][0]["name"]))[-1]
    assert drawn["traces"][-1]["y"] == list(rows["counts"][int(first)])


def errors(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """The error of every step of every method, an error of 0 at the foot."""
    told = rec.columns(ErrorMeasured, 0, p)
    traces = {t["name"]: t for t in drawn["traces"]}
    methods = np.asarray(told["method"])
    for method, name in (("forward", "forward"), ("complex", "complex step")):
        mine = np.flatnonzero(methods == method)
        if len(mine):
            assert np.allclose(traces[name]["x"], told["h"][mine])
            known = [e for e in traces[name]["y"] if e is not None]
            found = told["error"][mine]
            assert np.allclose(known, np.maximum(found[np.isfinite(found)], 1e-18))
    assert ("automatic" in traces) == ("automatic" in methods)


def cost(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """The time of every Jacobian: three lines by inputs, three by outputs."""
    told = rec.columns(CostMeasured, 0, p)
    lines = [t for t in drawn["traces"] if t["name"] in WAYS]
    for trace, (sweep, way) in zip(lines, product(("inputs", "outputs"), WAYS), strict=True):
        mine = np.flatnonzero((np.asarray(told["sweep"]) == sweep) & (np.asarray(told["way"]) == way))
        assert trace["name"] == way
        assert trace["x"] == told[f"n_{sweep}"][mine].tolist()
        assert np.allclose(trace["y"], told["elapsed_ms"][mine])


def passes(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Three lines along the passes: kernels, bytes and time after each; the first two fall to what was compiled."""
    told = rec.columns(PassFinished, 0, p)
    kernels, n_bytes, run_us = (t["y"] for t in drawn["traces"])
    assert [t["x"] for t in drawn["traces"]] == [list(range(k))] * 3
    assert kernels == told["n_kernels"].tolist()
    assert np.allclose(n_bytes, told["n_bytes"] / 1e3)
    assert np.allclose(run_us, told["run_us"])
    if told["name"][-1] == "compiled":
        assert kernels[-1] < kernels[0]
        assert n_bytes[-1] < n_bytes[0]


def retraces(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A box for each trace, and calls in stretches that are as long together as there were calls."""
    traces, hits = rec.columns(Traced, 0, p), rec.columns(CacheHit, 0, p)
    nodes = drawn["nodes"]
    graphs = [node["label"] for n, node in nodes.items() if n.startswith("g")]
    assert len(graphs) == len(traces["graph"])
    words = [node["sublabel"] for n, node in nodes.items() if n.startswith("c")]
    assert words.count("traced") == len(traces["graph"])
    assert sum(int(word.split()[0]) for word in words if word != "traced") == len(hits["graph"])


def calls(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Of each way every call and the sum so far; the parts of the first jitted call."""
    told = rec.columns(CallMeasured, 0, p)
    way, number, took = np.asarray(told["way"]), told["number"], told["elapsed_ms"]
    for at, name in enumerate(("eager", "jit")):
        each = [float(took[(way == name) & (number == n)].sum()) for n in np.unique(number[way == name])]
        assert np.allclose(drawn["traces"][at]["y"], each)
        assert np.allclose(drawn["traces"][2 + at]["y"], np.cumsum(each))
    first = (way == "jit") & (number == 1)
    assert drawn["traces"][4]["y"] == np.asarray(told["part"])[first].tolist()[::-1]
    assert np.allclose(drawn["traces"][4]["x"], took[first][::-1])


def building(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A line for each way: what it takes once, and a step as often as it is made."""
    told = rec.columns(BuildMeasured, 0, p)
    assert [t["name"] for t in drawn["traces"]] == np.asarray(told["way"]).tolist()
    for trace, once, step in zip(drawn["traces"], told["once_ms"], told["step_ms"], strict=True):
        assert np.allclose(trace["y"], once + step * np.asarray(trace["x"]))


def captures(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """What each way gave and whether it is equal; a mark before each line that ran."""
    told, nodes = rec.columns(CaptureCompared, 0, p), drawn["nodes"]
    rows = zip(told["number"], told["way"], told["result"], told["verdict"], told["lines"], strict=True)
    for at, way, result, verdict, lines in rows:
        box = nodes[f"{way}{at}"]
        assert box["label"] == result
        assert (box["state"] == "trouble") == (verdict in ("wrong", "error"))
        if way == "eager":
            assert {n for n in nodes if n.startswith("l") and n.endswith(f".{at}")} == {
                f"l{line}.{at}" for line in lines
            }
def schedule(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A bar for each equation that has run in threads by then, as long as it took, in the lane of its thread."""
    begun = rec.positions(GraphRunBegun)[2]
    ran = rec.columns(EquationRan, int(begun), p)
    took = dict(zip(map("e{}".format, ran["number"]), ran["stop_ns"] - ran["start_ns"], strict=True))
    lanes = dict(zip(map("e{}".format, ran["number"]), ran["lane"], strict=True))
    assert drawn["nodes"].keys() == took.keys()
    wide = [n for n, node in drawn["nodes"].items() if node["w"] > 20]
    scale = [drawn["nodes"][n]["w"] / took[n] for n in wide]
    assert not wide or np.allclose(scale, scale[0], rtol=0.02)
    heights = {(lanes[n], round(node["y"])) for n, node in drawn["nodes"].items()}
    assert len(heights) == len(set(lanes.values()))


def prefetch(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A bar for each batch in each stage by then, in the lane of the stage, as long as it took."""
    ran = rec.columns(StageRan, int(rec.positions(PrefetchRunBegun)[1]), p)
    names = [f"{stage}{item}" for stage, item in zip(ran["stage"], ran["item"], strict=True)]
    took = dict(zip(names, ran["stop_ns"] - ran["start_ns"], strict=True))
    assert drawn["nodes"].keys() == took.keys()
    wide = [n for n, node in drawn["nodes"].items() if node["w"] > 5]
    scale = [drawn["nodes"][n]["w"] / took[n] for n in wide]
    assert not wide or np.allclose(scale, scale[0], rtol=0.05)
    heights = {(n.rstrip("0123456789"), round(node["y"])) for n, node in drawn["nodes"].items()}
    assert len(heights) == len(set(ran["stage"]))


def swell(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Four counts for each depth, and the tape grows by as many as the function has."""
    told = rec.columns(SwellMeasured, 0, p)
    columns = ("n_ops", "n_ops_shared", "n_gradient", "n_tape")
    assert [t["y"] for t in drawn["traces"]] == [told[name].tolist() for name in columns]
    assert drawn["traces"][-1]["y"] == [3 * depth for depth in range(1, k + 1)]


def slopes(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """The function as it was sampled, and a mark for the lab and each library that is known."""
    told, known = rec.columns(SlopesMeasured, 0, p), rec.columns(ChoiceKnown, 0, p)
    function, *_, taken = drawn["traces"]
    assert function["x"] == list(told["xs"][0])
    assert function["y"] == [max(x, 0.0) for x in function["x"]]
    assert taken["x"] == ["lab", *np.asarray(known["library"]).tolist()]
    assert taken["y"] == [0.5, *known["slope"].tolist()]


def rule(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Three maps of the comparison that was told last, and a mark on each entry beside the diagonal: all are wrong."""
    told = rec.columns(JacobianCompared, 0, p)
    expected, actual = (np.array(list(told[name][-1])).reshape(4, 4) for name in ("expected", "actual"))
    by_name = {trace["name"]: trace for trace in drawn["traces"]}
    maps = {"by differences": expected, "by the rule": actual, "rule less differences": actual - expected}
    for name, z in maps.items():
        assert np.allclose(by_name[name]["z"], z)
    assert by_name["no number"]["x"] == by_name["not compared"]["x"] == []
    wrong = by_name["wrong"]
    assert len(wrong["x"]) == 12
    assert all(column != f"x{row}" for column, row in zip(wrong["x"], wrong["y"], strict=True))


def memory(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """What was held after each operation and node, in MiB; what ran again has a point."""
    told = rec.columns(MemorySampled, 0, p)
    way, phase = np.asarray(told["way"]), np.asarray(told["phase"])
    traces = {t["name"]: t for t in drawn["traces"]}
    for name in ("plain", "checkpoints"):
        assert np.allclose(traces[name]["y"], told["n_bytes"][way == name] / 2**20)
    if (phase == "replay").any():
        assert traces["replayed"]["x"] == told["number"][phase == "replay"].tolist()


def rewritten(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A row for each equation before and after, and ways from each to all that make its variable or stand for it."""
    told = rec.columns(GraphMade, 0, p)
    now = len(told["number"]) - 1
    then = max(now - 1, 0)
    for side, at in (("a", then), ("b", now)):
        rows = {name: node["aria"] for name, node in drawn["nodes"].items() if name.startswith(side)}
        assert rows.keys() == {f"{side}{i}" for i in range(len(told["words"][at]))}
        assert all(f": {line}" in rows[f"{side}{i}"] for i, line in enumerate(told["words"][at]))

    def owners(at: int, name: str) -> list[tuple[int, int]]:
        counts, numbers = told[f"n_{name}"][at], told[name][at]
        return list(zip(np.repeat(np.arange(len(counts)), counts).tolist(), numbers, strict=True))

    makers = {v: i for i, v in owners(then, "outs")}
    links = {(makers[v], j) for j, v in [*owners(now, "outs"), *owners(now, "sources")] if v in makers}
    assert {name for name in drawn["edges"] if name.startswith("p")} == {f"p{i}-{j}" for i, j in links}


def plan(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A bar for each value of the plan that was made or run last: as high as its bytes, as long as it lives."""
    made, values = rec.columns(MemoryPlanMade, 0, p), rec.columns(ValuePlaced, 0, p)
    names = np.asarray(made["plan"]).tolist()
    name = ([way for way in np.asarray(rec.columns(RunHeld, 0, p)["way"]).tolist() if way in names] or names)[-1]
    mine = np.flatnonzero(np.asarray(values["plan"]) == name)
    n = int(made["n_equations"][names.index(name)])
    assert drawn["nodes"].keys() == {values["value"][i] for i in mine}
    bars = [drawn["nodes"][values["value"][i]] for i in mine]
    lives = np.minimum(values["stop"][mine] + 1, n) - values["start"][mine]
    wide = np.array([bar["w"] for bar in bars]) + 1.0
    assert np.allclose(wide / wide[0], lives / lives[0], rtol=0.02)
    tall, large = np.array([bar["h"] for bar in bars]) + 1.0, values["n_bytes"][mine]
    seen = tall > 3.0
    assert np.allclose(tall[seen] / tall[0], large[seen] / large[0], rtol=0.02)


def ring(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Each rank has sent the bytes of its hops in the steps that are shown."""
    hops = rec.columns(ChunkMoved)
    shown = np.isin(hops["step"], np.unique(hops["step"])[: k - 1])
    for rank in range(4):
        sent = int(hops["n_bytes"][shown & (hops["src"] == rank)].sum())
        assert drawn["nodes"][f"r{rank}"]["aria"].startswith(f"rank {rank}, sent {n_bytes(sent)}")


def compared(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """On each side every rank has sent the bytes of its hops in the steps that are shown."""
    hops = rec.columns(ChunkMoved)
    for at, side in enumerate("ab"):
        mine = hops["collective"] == at
        shown = mine & np.isin(hops["step"], np.unique(hops["step"][mine])[: k - 1])
        for rank in range(4):
            sent = int(hops["n_bytes"][shown & (hops["src"] == rank)].sum())
            assert drawn["nodes"][f"{side}:r{rank}"]["aria"].startswith(f"rank {rank}, sent {n_bytes(sent)}")


def times(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A line of measured times for each algorithm, and a dashed one of simulated times."""
    traces = {t["name"]: t for t in drawn["traces"]}
    for kind, end in ((TimeMeasured, ""), (TimeSimulated, ", simulated")):
        told = rec.columns(kind, 0, p)
        for name in ("ring", "tree"):
            mine = np.asarray(told["algorithm"]) == name
            assert traces[f"{name}{end}"]["x"] == told["n_bytes"][mine].tolist()
            assert np.allclose(traces[f"{name}{end}"]["y"], told["elapsed_ms"][mine])


def root_link(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """What rank 0 sent and received of each plan, in buffers."""
    told, whole = rec.columns(RootLinkMeasured, 0, p), rec.columns(RootLinkBegun)["n_bytes"][0]
    names = [f"{o}, {a}" for o, a in zip(told["operation"], told["algorithm"], strict=True)]
    for trace in drawn["traces"]:
        mine = np.array([name == trace["name"] for name in names])
        assert trace["x"] == told["world_size"][mine].tolist()
        assert np.allclose(trace["y"], (told["sent_bytes"] + told["received_bytes"])[mine] / whole)


def spread(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A line for each way to synchronise, as far apart as was measured."""
    rows = rec.columns(SpreadMeasured, 0, p)
    for trace, every in zip(drawn["traces"], dict.fromkeys(rows["every"].tolist()), strict=True):
        mine = rows["every"] == every
        assert trace["x"] == rows["step"][mine].tolist()
        assert np.allclose(trace["y"], rows["largest"][mine])


def buckets(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """The curve has a point for each size, as high as its median; the marked one is that whose lanes were told last."""
    rows, told = rec.columns(BucketsTimed, 0, p), rec.columns(BucketStepTold, 0, p)
    traces = {trace["name"]: trace for trace in drawn["traces"]}
    assert np.allclose(traces["median step"]["y"], rows["elapsed_ms"])
    if len(told["bucket_bytes"]):
        at = rows["bucket_bytes"].tolist().index(told["bucket_bytes"][-1])
        assert traces["shown above"]["x"] == [traces["median step"]["x"][at]]
        assert np.allclose(traces["shown above"]["y"], rows["elapsed_ms"][at])


def accumulation(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Bytes and times of each size, a cross where the limit is passed."""
    rows, begun = rec.columns(AccumulationMeasured, 0, p), rec.columns(AccumulationBegun, 0, p)
    traces = {trace["name"]: trace for trace in drawn["traces"]}
    held = traces["held at most"]
    assert held["x"] == traces["median step"]["x"] == rows["micro_batch"].tolist()
    assert np.allclose(traces["median step"]["y"], rows["elapsed_ms"])
    scale = rows["peak_bytes"] / np.array(held["y"])
    assert np.allclose(scale, scale[0])
    if "limit" in traces:
        assert np.allclose(np.array(traces["limit"]["y"]) * scale[0], begun["limit_bytes"][-1])


def means(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A line for each way, as high as its losses; below, for all but the first, how far they are from that."""
    rows = rec.columns(MeansStepped, 0, p)
    ways = list(dict.fromkeys(rows["way"]))
    above, below = drawn["traces"][: len(ways)], drawn["traces"][len(ways) :]
    assert [trace["name"] for trace in above] == ways
    assert [trace["name"] for trace in below] == ways[1:]
    losses = {way: rows["loss"][rows["way"] == way] for way in ways}
    top = 1.25 * losses[ways[0]].max()
    for trace in above:  # what leaves the frame is a gap
        assert trace["y"] == [y if y <= top else None for y in losses[trace["name"]]]
    for trace in below:
        mine = losses[trace["name"]]
        apart = np.maximum(np.abs(mine - losses[ways[0]][: len(mine)]), 1e-9)
        assert trace["y"] == [y if y <= 10 else None for y in apart]


def orders(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Two bars for each order: entries that are not exact, and those unlike the first order's."""
    rows = rec.columns(OrderMeasured, 0, p)
    inexact, other = drawn["traces"]
    assert inexact["x"] == other["x"] == list(rows["algorithm"])
    assert (inexact["y"], other["y"]) == (rows["n_inexact"].tolist(), rows["n_other"].tolist())


def recovery(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Each loss is on the lane of its rank, each blow is drawn, and the loss has a point for each step."""
    lost, blows = rec.columns(RankLost, 0, p)["lost_rank"].tolist(), rec.columns(WorkerHandled, 0, p)
    traces = {trace["name"]: trace for trace in drawn["traces"]}
    assert traces.get("loss is known", {"y": []})["y"] == lost
    assert len(traces.get("killed by hand", {"y": []})["y"]) == int((blows["action"] == "killed").sum())
    assert len(traces["loss of the batch"]["x"]) == len(rec.columns(StepFinished, 0, p)["step"]) + len(lost)


def replicas(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Shard, norm of the gradient and checksum of each replica are those that it told."""
    rows = rec.columns(ReplicaAdvanced, 0, p)
    mine = rows["step"] == rows["step"][-1]
    told = {(rows["phase"][i], int(rows["rank"][i])): i for i in np.flatnonzero(mine)}
    for (phase, rank), i in told.items():
        shard = f"{rows['start'][i]}–{rows['stop'][i] - 1}"
        box, wanted = {
            "shard": ("shard", shard), "gradient": ("gradient", number(float(rows["norm"][i]))),
            "reduced": ("sum", number(float(rows["norm"][i]))), "updated": ("update", f"{rows['checksum'][i]:08x}"),
        }[phase]  # fmt: skip
        assert drawn["nodes"][f"{box}{rank}"]["label"] == wanted
    assert len(told) == 4 * len({phase for phase, _ in told})


def pipeline(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """A bar for each of the earliest actions of the second step, as long as it took."""
    rows = rec.columns(ActionFinished)
    ends = np.argsort(rows["end_ns"], kind="stable")
    shown = ends[len(ends) // 2 :][:k]
    over = {n: node for n, node in drawn["nodes"].items() if node["state"] != "waiting"}
    bars = {n: node for n, node in over.items() if node["kind"].endswith("_span")}
    names = [f"{rows['stage'][i]}{rows['kind'][i]}{rows['micro'][i]}" for i in shown]
    took = dict(zip(names, (rows["end_ns"] - rows["start_ns"])[shown], strict=True))
    assert bars.keys() == took.keys()
    scale = [bars[n]["w"] / took[n] for n in bars]
    assert np.allclose(scale, scale[0], rtol=0.02)


def workers(rec: Recording, p: int, k: int, drawn: Drawn) -> None:
    """Each rank is on the card of its worker, with the memory that was last seen."""
    ranks, seen = rec.columns(RankStarted, 0, p), rec.columns(WorkerSeen, 0, p)
    memory = dict(zip(seen["worker"], seen["memory_bytes"].tolist(), strict=True))
    cards = [node["aria"] for node in drawn["nodes"].values()]
    for worker, used in memory.items():
        assert sum(f"{worker}, " in aria and f"{used / 2**20:,.0f} of " in aria for aria in cards) == 1
    last = ranks["generation"] == max(ranks["generation"], default=0)
    for rank, worker, pid in zip(*(np.asarray(ranks[name])[last] for name in ("rank", "worker", "pid")), strict=True):
        told = f"{worker}, ", f"holds rank {rank}: ", f"pid {pid}"
        assert sum(all(words in aria for words in told) for aria in cards) == 1


BY_TITLE = {
    "A small graph": graph, "Contributions": contributions, "Forward mode": duals, "Visits": visits,
    "Error against step": errors, "Cost of a Jacobian": cost, "Pass by pass": passes,
    "Calls of jitted functions": retraces, "First call and later calls": calls,
    "A graph each step, or once": building, "Traced and scripted": captures,
    "A graph in threads": schedule, "Prefetch": prefetch,
    "Broadcasting of shapes": stretched, "vmap": mapped, "Layers": layers,
    "Expression swell": swell, "Slopes at a kink": slopes, "A rule against differences": rule,
    "Memory over forward and backward": memory, "Memory plan": plan,
    "Before and after a pass": rewritten,
    "The gradient's graph": twice, "First nan": broken, "One step of a network": graph,
    "A transformer block": grouped, "A transformer": grouped,
    "Why this gradient": why, "First difference": difference, "Loss": loss, "Gradients": gradients,
    "All-reduce, ring": ring, "All-reduce as a matrix": ring,
    "All-reduce, tree": ring, "All-reduce, two trees": ring, "All-to-all": ring, "Ring and tree": compared,
    "Times of collectives": times, "The link of the root": root_link,
    "All-reduce, naive": ring, "Broadcast": ring, "Data parallel": replicas,
    "Size of the buckets": buckets,
    "Size of the micro-batches": accumulation, "Means of micro-batches": means,
    "Spread of replicas": spread, "Orders of addition": orders, "A worker is killed": recovery,
    "Pipeline": pipeline, "Workers": workers,
}  # fmt: skip
"""The check of each exhibit; one without is an error."""
