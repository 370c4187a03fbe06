"""Traces for Perfetto: valid in their format, and what they show is what was recorded."""

from __future__ import annotations

import gzip
import json
import math

import pytest

import lab
from lab import __main__ as cli
from lab.errors import ArgumentError
from lab.events import (
    ActionFinished,
    ActivationMoved,
    BackwardStarted,
    ChunkMoved,
    HyperparameterChanged,
    OpRecorded,
    RuleApplied,
    RunStarted,
    StepFinished,
)
from lab.interop import perfetto
from tests.interop.trace_format import crossing, faults_of
from tests.widgets.golden import falling, product_plus_x, recorded, training, walk
from tests.widgets.golden_cluster import launch_of, lost
from tests.widgets.golden_pipeline import Paced, pipeline, ran
from tests.widgets.golden_ranks import collective, ranks_of, told, trained
from widgets.views.collective.calls import Calls


def second_order():
    """A walk that is recorded itself, and walked over again: grad of grad."""
    x = lab.tensor(2.0, requires_grad=True)
    with lab.record(detail="shape") as rec:
        lab.grad(lab.grad(lambda v: v * v * v))(2.0)
        (x * x).backward()
    return rec


def cut_off():
    """A run, a program, a collective and a walk, none of which ended."""
    events = [RunStarted("golden", 3, 1, 10, "Linear", "SGD"), *walk()[:3]]
    events += [event for rank, event in collective("all_reduce", "ring", ranks_of(3)) if rank == 0][:2]
    return recorded(events)


RECORDINGS = {
    "a graph": product_plus_x,
    "two walks": lambda: product_plus_x(2),
    "grad of grad": second_order,
    "a training": lambda: training([*falling(25), math.nan, math.inf]),
    "an all-reduce": lambda: told(collective("all_reduce", "ring", ranks_of(4))),
    "a broadcast from rank 2": lambda: told(collective("broadcast", "flat", ranks_of(5), root=2)),
    "twice the same number": lambda: told(collective("all_reduce", "ring", ranks_of(2)) * 2),
    "gpipe": lambda: pipeline("gpipe", 3, 5),
    "interleaved": lambda: pipeline("1f1b", 2, 4, chunks=1, batches=True),
    "a real pipeline": lambda: ran("1f1b", 3, 4, n_steps=2),
    "a paced pipeline": lambda: ran("1f1b", 2, 3, paced=Paced(2.0, 3.0)),
    "a real training on ranks": lambda: trained(3),
    "a launch": lambda: launch_of(4),
    "a lost rank": lost,
    "what never ended": cut_off,
}


def trace_of(rec):
    return list(perfetto.events_of(rec))


def named(events, phase, of=""):
    return [e for e in events if e["ph"] == phase and of in e.get("cat", "")]


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_recording_is_a_valid_trace(name, tmp_path):
    text = perfetto.save(RECORDINGS[name](), tmp_path / "trace.json").read_text()
    assert faults_of(text) == []
    assert len(json.loads(text)["traceEvents"]) > 4


def test_ranks_are_processes_and_the_launcher_is_another():
    names = {e["pid"]: e["args"]["name"] for e in trace_of(launch_of(3)) if e["name"] == "process_name"}
    assert sorted(names.values()) == ["launcher of digits", "rank 0", "rank 1", "rank 2"]


def test_of_several_runs_ranks_say_whose_they_are():
    from tests.widgets.golden_cluster import beginning
    from tests.widgets.golden_pipeline import recorded_by_ranks

    rec, other = recorded_by_ranks(beginning(2, 2), "first"), recorded_by_ranks(beginning(2, 2), "second")
    from lab.events import Bus, Recording
    from lab.events.event import Origin, values_of

    both, bus = Recording(run="*"), Bus()
    bus.attach(both)
    for event in (*rec, *other):
        bus.append((type(event), event.time_ns, Origin(event.rank, event.run), values_of(event)))
    bus.detach(both)
    names = {e["args"]["name"] for e in trace_of(both) if e["name"] == "process_name"}
    assert {"rank 0 of first", "rank 1 of second"} <= names


def test_steps_have_their_measured_length_and_the_loss_is_a_counter():
    rec = training(falling(5))
    events = trace_of(rec)
    steps = named(events, "X", "step")
    assert [e["name"] for e in steps] == [f"step {k}" for k in range(1, 6)]
    rows = rec.columns(StepFinished)
    ends = [round((e["ts"] + e["dur"]) * 1000) for e in steps]
    assert ends == rows["time_ns"].tolist()
    assert [e["args"]["loss"] for e in events if e["ph"] == "C" and e["name"] == "loss"] == rows["loss"].tolist()


def test_times_are_microseconds_of_the_recordings_clock():
    rec = pipeline("gpipe", 2, 2, n_steps=1)
    rows = rec.columns(ActionFinished)
    drawn = {(e["args"]["stage"], e["args"]["micro_batch"], e["cat"]): (e["ts"], e["dur"])
             for e in named(trace_of(rec), "X", "pipeline")}  # fmt: skip
    assert len(drawn) == len(rows["stage"]) == 8
    for kind, stage, micro, start, end in zip(
        *(rows[f] for f in ("kind", "stage", "micro", "start_ns", "end_ns")), strict=True
    ):
        way = "pipeline,forward" if kind == "F" else "pipeline,backward"
        assert drawn[stage, micro, way] == pytest.approx((start / 1000, (end - start) / 1000))


def test_every_hop_has_a_slice_and_an_arrow_from_its_sender():
    rec = told(collective("all_reduce", "ring", ranks_of(4)))
    events = trace_of(rec)
    pids = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
    rows = rec.columns(ChunkMoved)
    wanted = sorted((pids[f"rank {src}"], pids[f"rank {dst}"]) for src, dst in
                    zip(rows["src"].tolist(), rows["dst"].tolist(), strict=True))  # fmt: skip
    starts, ends = ({e["id"]: e["pid"] for e in named(events, phase, "hop")} for phase in "sf")
    assert sorted((starts[k], ends[k]) for k in starts) == wanted
    assert len(named(events, "X", "hop")) == len(wanted) == 24
    assert {e["name"] for e in named(events, "X", "collective")} > {"all-reduce (ring)", "chunk 0 from rank 3"}


def test_an_arrow_leaves_when_the_sender_has_what_it_sends():
    events = trace_of(told(collective("all_reduce", "ring", ranks_of(3))))
    came = {(e["args"]["dst"], e["args"]["step"]): e["ts"] + e["dur"] for e in named(events, "X", "hop")}
    hops = named(events, "X", "hop")
    for hop, start in zip(hops, named(events, "s", "hop"), strict=True):
        before = came.get((hop["args"]["src"], hop["args"]["step"] - 1))
        if before is not None:
            assert start["ts"] == pytest.approx(before, abs=0.002)


def test_every_activation_and_gradient_that_moved_has_an_arrow():
    rec = ran("1f1b", 3, 4)
    events = trace_of(rec)
    assert len(named(events, "s", "pipeline")) == len(rec.positions(ActivationMoved)) == 2 * 2 * 4
    assert {e["name"] for e in named(events, "f", "pipeline")} == {"activation", "gradient"}


def test_live_activations_are_counted_for_each_rank():
    rec = pipeline("1f1b", 4, 8, n_steps=1)
    events = trace_of(rec)
    highest = {}
    for e in events:
        if e["ph"] == "C" and e["name"] == "live activations":
            highest[e["pid"]] = max(highest.get(e["pid"], 0), e["args"]["live activations"])
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {names[pid]: n for pid, n in highest.items()} == {f"rank {r}": 4 - r for r in range(4)}


def test_operations_are_moments_and_rules_are_slices_inside_of_their_walk():
    rec = product_plus_x()
    events = trace_of(rec)
    assert [e["name"] for e in named(events, "i", "operation")] == list(rec.columns(OpRecorded)["op"])
    (whole,) = [e for e in named(events, "X", "backward") if e["name"] == "backward from v₄"]
    rules = named(events, "X", "rule")
    assert [e["name"] for e in rules] == list(rec.columns(RuleApplied)["op"])
    assert all(whole["ts"] <= e["ts"] and e["ts"] + e["dur"] <= whole["ts"] + whole["dur"] for e in rules)
    assert whole["args"]["n_nodes"] == rec.columns(BackwardStarted)["n_nodes"][0]


def test_what_never_ended_says_so():
    ends = {e["name"]: e["args"].get("end", e["args"].get("state")) for e in trace_of(cut_off()) if e["ph"] == "X"}
    for name in ("all-reduce (ring)", "backward from v₄", "run golden"):
        assert ends[name] == "not in this recording"


def test_a_hyperparameter_that_changes_is_a_counter_and_one_that_stays_is_none():
    changes = [HyperparameterChanged(0, "learning_rate", 0.1), HyperparameterChanged(0, "momentum", 0.9),
               HyperparameterChanged(4, "learning_rate", 0.05)]  # fmt: skip
    counted = [e["args"] for e in trace_of(recorded(changes)) if e["ph"] == "C"]
    assert counted == [{"learning_rate": 0.1}, {"learning_rate": 0.05}]


def test_a_compressed_trace_holds_the_same(tmp_path):
    rec = pipeline("gpipe", 2, 3)
    plain, packed = (perfetto.save(rec, tmp_path / name) for name in ("a.json", "a.json.gz"))
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.read_bytes() == perfetto.save(rec, tmp_path / "b.json.gz").read_bytes()
    assert packed.stat().st_size < plain.stat().st_size / 5


def test_the_file_says_what_it_is_of_and_what_is_missing(tmp_path):
    rec = recorded(list(training(falling(8))), limit=5)
    rec.meta["title"] = "golden"
    other = json.loads(perfetto.save(rec, tmp_path / "a.json").read_text())["otherData"]
    assert other["title"] == "golden"
    assert other["lab"] == lab.__version__
    assert "are not in the recording" in other["dropped"]


@pytest.mark.parametrize("name", ["a.txt", "a", "a.gz", ".html"])
def test_another_ending_is_refused_and_nothing_is_written(tmp_path, name):
    with pytest.raises(ArgumentError, match="a trace is a file of JSON"):
        perfetto.save(product_plus_x(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_recording_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="nothing in this recording to trace") as caught:
        perfetto.save(recorded([]), tmp_path / "a.json")
    assert len(str(caught.value).splitlines()) == 3
    assert list(tmp_path.iterdir()) == []


def test_the_trace_of_a_training_names_each_call_once_for_each_rank():
    rec = trained(3)
    calls = Calls(rec)
    calls.update()
    whole = [e for e in named(trace_of(rec), "X", "collective") if e["cat"] == "collective"]
    assert len(whole) == 3 * len(calls)


# --- the command line ---


def test_the_command_line_writes_the_trace_of_a_recording(tmp_path, capsys):
    pipeline("1f1b", 2, 4).save(tmp_path / "run.rec")
    assert cli.main(["trace", str(tmp_path / "run.rec"), "--out", str(tmp_path / "trace.json")]) == 0
    assert f"The trace is in {tmp_path / 'trace.json'}" in capsys.readouterr().out
    assert faults_of((tmp_path / "trace.json").read_text()) == []


@pytest.mark.parametrize(("out", "said"), [("nowhere/a.json", "cannot be written"), ("a.json", "no recording of")])
def test_the_command_line_says_what_is_wrong_in_three_lines(tmp_path, capsys, out, said):
    (tmp_path / "bad.rec").write_text("not a recording, but long enough to have been one")
    training([1.0]).save(tmp_path / "run.rec")
    source = "run.rec" if "nowhere" in out else "bad.rec"
    assert cli.main(["trace", str(tmp_path / source), "--out", str(tmp_path / out)]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 3
    assert not (tmp_path / out).exists()


def test_a_trace_is_named_json(capsys):
    with pytest.raises(SystemExit):
        cli.main(["trace", "run.rec", "--out", "trace.html"])
    assert "ends in .json or .json.gz" in capsys.readouterr().err


# --- the judge ---

GOOD = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "p"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 7, "args": {"name": "t"}},
    {"ph": "X", "name": "a", "cat": "c", "ts": 1.0, "dur": 4.0, "pid": 1, "tid": 7},
    {"ph": "X", "name": "b", "cat": "c", "ts": 6.0, "dur": 4.0, "pid": 1, "tid": 7},
    {"ph": "s", "name": "n", "cat": "c", "id": 1, "ts": 2.0, "pid": 1, "tid": 7},
    {"ph": "f", "bp": "e", "name": "n", "cat": "c", "id": 1, "ts": 7.0, "pid": 1, "tid": 7},
]


@pytest.mark.parametrize(("k", "change", "said"), [
    (2, {"dur": 5.5}, "crosses"), (2, {"dur": -1.0}, "dur is"), (2, {"ph": "Z"}, "phase"),
    (4, {"ts": 5.5}, "no slice around"), (5, {"ts": 1.5}, "arrow 1"), (5, {"id": 2}, "one end"),
    (5, {"bp": "x"}, "next slice"), (3, {"tid": 8}, "no name"), (0, {"args": {}}, "metadata"),
    (4, {"id": 3}, "one end"),
])  # fmt: skip
def test_the_judge_of_traces_finds_what_is_wrong(k, change, said):
    assert faults_of(json.dumps({"traceEvents": GOOD})) == []
    bad = [e | change if i == k else e for i, e in enumerate(GOOD)]
    assert any(said in fault for fault in faults_of(json.dumps({"traceEvents": bad})))
    assert crossing(GOOD) == []
