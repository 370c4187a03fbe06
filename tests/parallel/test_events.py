"""Events of ranks, collectives and pipelines: a recording keeps them, in a file too."""

from lab.events import (
    ActionFinished,
    ActionStarted,
    ChunkMoved,
    CollectiveFinished,
    CollectiveStarted,
    RankFinished,
    RankLost,
    RankStarted,
    Recording,
    bus,
    record,
)

EVENTS = [
    RankStarted(1, 4, "tcp://127.0.0.1:1", 77),
    CollectiveStarted(0, "all_reduce", "ring", 4000, 4, 4),
    ChunkMoved(0, 2, src=3, dst=0, start=1, stop=2, reduces=True, n_bytes=1000),
    CollectiveFinished(0, "all_reduce", "ring", 4000, 4, 4),
    ActionStarted("F", 1, 0, paced=False),
    ActionFinished("F", 1, 0, paced=False, start_ns=10, end_ns=20, n_live=1),
    RankLost(1, lost_rank=2, worker="tcp://127.0.0.1:2", reason="the worker left"),
    RankFinished(1, "failed", 12.5, "ZeroDivisionError: division by zero"),
]


def test_a_recording_keeps_the_events_of_ranks_in_a_file_too(tmp_path):
    with record() as rec:
        for each in EVENTS:
            bus.emit(each)
    rec.save(tmp_path / "run.rec")
    assert list(Recording.load(tmp_path / "run.rec")) == list(rec) == EVENTS
