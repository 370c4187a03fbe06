"""A training that ranks on a cluster carry out, as a job of an ordinary run in this process.

The run's thread asks for steps, holds and changes; orders go to rank 0, words come back. The training that stays here
stands where the ranks stood when they were last held, or at the end: whole, or not at all.
"""

from __future__ import annotations

import math
import pickle
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.autograd import Tensor
from lab.errors import LabError, MeshError, RankError, RunError
from lab.events import Event
from lab.events.gate import leave_out
from lab.optim.optimizer import Snapshot
from lab.parallel.cluster.cluster import Cluster, require_guard
from lab.parallel.cluster.launching import Launch
from lab.parallel.cluster.silence import QUIET
from lab.parallel.ranks.hops import AtHop
from lab.parallel.ranks.ticks import AtTick
from lab.parallel.training.hopping import Hopping
from lab.parallel.training.packing import packed
from lab.parallel.training.steering import At, Held, Order
from lab.training.job import RECORDED
from lab.training.result import Result
from lab.training.trainer import Training
from lab.words import counted

if TYPE_CHECKING:
    from distributed import Client

SAYS = 1.0
"""Seconds of waiting after which it is said for what."""
LISTENS = 0.5
"""Seconds after which it looks whether the launch has ended, if it hears nothing."""
ENDS = 10.0
"""Seconds that a launch has to end when its job is closed; after that only the scheduler can help."""
PART_BYTES = 1 << 19
"""What one order carries of a state: all of it goes through the scheduler, which takes 1 MiB at once."""
LARGEST = 1 << 26
"""Bytes of a state that are still sent through the scheduler."""

Program = Callable[..., Any]
"""`program(comm, payload, run, *args)`, on every rank: `unpacked(payload)` is a copy of the training, `run` the name of
its run; it is led by a `Steering`, and what it returns on rank 0 is what the training stands at in the end."""


class ClusterJob:
    """The job of a run whose steps ranks on a cluster do.

    Args:
        training: stays here and is what the run shows; ranks get copies.
        program: what each rank runs.
        args: for the program, after its payload and the name of the run.
        kinds: of events that the run's recording takes.
        cluster: where; None starts one for this run and closes it at the end.
        timeout: of the launch, and how long a stop waits for the ranks to end their step.
        units: what can be stepped through within a step: "hop", if what ranks exchange there are collectives, "action"
            of a pipeline.
        options: of the launch.

    Attributes:
        payload: the training as it is sent.
        hopping: holds the ranks within their steps.

    Raises:
        ArgumentError: the training cannot be sent to workers.
        MeshError: a script would start workers whenever it is imported.
    """

    def __init__(
        self,
        training: Training,
        program: Program,
        args: tuple[object, ...] = (),
        *,
        kinds: tuple[type[Event], ...] = RECORDED,
        units: tuple[str, ...] = (),
        cluster: Cluster | Client | str | None = None,
        world_size: int | None = None,
        timeout: float = 60.0,
        **options: Any,
    ) -> None:
        import sys

        if cluster is None:
            require_guard(sys._getframe(1))
        self.training, self.n_steps, self.step = training, training.n_steps, training.step
        self.kinds, self._program, self._args, self.payload = kinds, program, args, packed(training)
        self._where, self._world_size, self._options = cluster, world_size, {"timeout": timeout, **options}
        self._patience = timeout
        # What holds a pipeline is an agreement of all ranks; before a step of a collective each is held by itself.
        self.hopping = Hopping(units, self._order, self._say_to_first if "action" in units else self._say_to_all)
        self._cluster: Cluster | None = None
        self._launch: Launch | None = None
        self._over = self._ahead = self._going = self._has_news = self._is_closing = False
        self._since = 0.0  # when the waiting began that is under way; 0 for none
        self._serial, self._held = 0, -1  # the last order, and the last that ranks carried out and then stood still
        self._trouble: RunError | None = None
        self._theirs = self._checksum()  # of the parameters and the state of the optimiser that the ranks have

    # --- what does not touch the ranks

    @property
    def parameters(self) -> Sequence[Tensor]:
        return self.training.parameters

    @property
    def finished(self) -> bool:
        return self.step >= self.n_steps

    @property
    def hyperparameters(self) -> dict[str, float]:
        return self.training.hyperparameters

    def check(self, name: str, value: float) -> None:
        self.training.check(name, value)

    @property
    def waits_for(self) -> str:
        since, launch = self._since, self._launch
        if not since or monotonic() - since < SAYS or self.hopping.is_held:
            return ""
        if self._is_closing:
            return "waiting for the ranks to end, and for their workers"
        if launch is None:
            here = f"{counted(self._world_size or 4, 'worker')} to start" if self._where is None else "the cluster"
            return f"waiting for {here}"
        if launch.state == "waiting":
            return f"waiting for workers: {launch.waits_for}" if launch.waits_for else "waiting for workers"
        if self._held < 0:
            return f"waiting for {counted(len(launch.workers), 'rank')} to begin: each loads the lab and the model"
        if self.step == 0:
            return "waiting for the first step of the ranks: each loads its kernels, or compiles them"
        silent = max(self._patience, QUIET)
        return (f"waiting for the ranks to end step {self.step + 1}; "
                f"one that does not answer is named after {silent:g} s")  # fmt: skip

    # --- in the run's thread

    def begin(self, run: str) -> None:
        self._since = monotonic()
        n_workers = self._world_size if self._where is None else None
        self._cluster = self._where if isinstance(self._where, Cluster) else Cluster(n_workers, self._where)
        args = (self.payload, run, *self._args)
        self._launch = self._cluster.start(self._program, *args, world_size=self._world_size, **self._options)
        self._has_news = True

    def run_ahead(self) -> None:
        self._ahead = True

    def ready(self) -> bool:
        self._listen(lambda: self._held >= 0, LISTENS)  # the ranks have not begun, and may have to wait for workers
        return self._over or self._held >= 0

    def hold(self) -> None:
        self._ahead, launch = False, self._launched
        if self._going:
            self._ask("hold")
        self._listen(lambda: self._held >= 0 or self._queues)  # ranks begin held, if they have begun
        if not self._over and launch.wait(0):  # a launch that ended although it was held has lost a rank
            self._end()
        if self._has_news and not self._over:
            launch.catch_up()  # who sees that the run is paused shall find its last step in the recording
            self._has_news = False

    def advance(self) -> RunError | None:
        """A step that was granted, or some that ranks ran ahead; none if it takes long: the run may be stopped."""
        before, self._has_news = self.step, True
        if not self._over and not self._going and self._held >= 0 and (refused := self._send_what_was_edited()):
            return refused
        if not self._ahead:
            self._ask("go", 1)
            leave_out(self.hopping.held_for())
        elif self.ready():
            if not self._going:
                self._order("go", math.inf)
                self._going = True
            self._listen(lambda: self.step > before or self._trouble is not None, LISTENS)
        trouble, self._trouble = self._trouble, None
        return trouble

    def set(self, name: str, value: float) -> None:
        self.training.optimizer.set(name, value)
        if not self._over:
            self._order("set", value, name)

    def bound(self, name: str, value: float) -> None:
        if not self._over:
            self._order("bound", value, name)

    def look_inside(self, run: str, held: Callable[[str], object]) -> Hopping:
        self.hopping.held = held
        return self.hopping

    def rewind(self) -> None:
        if self._over:
            self.training.rewind()
            self.step = self.training.step
        else:
            self._ask("rewind")

    def result(self, run: str, state: str, elapsed_ms: float) -> Result:
        if not self._over and self._queues:
            self._over = True  # no rank has begun: nothing is to be taken over, and close() does the rest
        elif not self._over:
            edited = None if self._going else self._edited()
            try:
                self._let_ranks_stop()
            except (MeshError, RunError):
                if self._launched.workers:
                    raise  # else it waited for workers, or found that there are none: nothing has begun
            if edited is not None:
                self.training.optimizer.restore(edited)
        return self.training.result(run, state, elapsed_ms)

    def _let_ranks_stop(self) -> None:
        self._order("stop")
        self._listen(lambda: self._queues, self._patience)
        if not self._over and self._queues:  # it was not known before that all workers are busy
            self._over = True
        elif not self._over:  # a rank does not come to the end of its step
            self._launched.stop()
            self._end()

    def close(self) -> None:
        self._over, self._is_closing, self._since = True, True, monotonic()
        if self._launch is not None:
            self._launch.stop()
            self._launch.wait(ENDS)
        if self._cluster is not None and self._cluster is not self._where:
            self._cluster.close()
        self._since = 0.0

    # --- orders and words

    @property
    def _launched(self) -> Launch:
        assert self._launch is not None, "the run has begun"
        return self._launch

    @property
    def _queues(self) -> bool:
        """Whether no rank has begun, for all workers are busy."""
        return self._launched.state == "waiting" and bool(self._launched.waits_for)

    def _send_what_was_edited(self) -> RunError | None:
        """Give the ranks, which are held, what somebody wrote into the model here; the reason if it is too much."""
        if (edited := self._edited()) is None:
            return None
        state = pickle.dumps(edited)
        if len(state) > LARGEST:
            return RunError("parameters were changed while the run on workers was paused",
                            given=f"{len(state) / 2**20:.3g} MiB of parameters and state of the optimiser, "
                            f"of at most {LARGEST >> 20} that are sent to ranks under way",
                            hint="run.rewind() goes back; run.stop() keeps them, to be fitted anew")  # fmt: skip
        for at in range(0, len(state), PART_BYTES):
            part = state[at : at + PART_BYTES]
            self._order("part", len(part), part=part)
        self._order("load")
        self._theirs = self._checksum()
        return None

    def _edited(self) -> Snapshot | None:
        """What the optimiser here holds, if it is not what the ranks have."""
        return self.training.optimizer.snapshot() if self._checksum() != self._theirs else None

    def _checksum(self) -> int:
        """Of what the optimiser here holds; with it, parameters that another one has moved are taken back."""
        for group in self.training.optimizer.groups:
            group.adopt()
        state = self.training.optimizer.snapshot()
        found = state.n_steps
        for values, slots in zip(state.values, state.slots, strict=True):
            for vector in (values, *slots.values()):
                found = zlib.crc32(vector.view(np.uint8), found)  # type: ignore[arg-type]  # an array is a buffer
        return found

    def _order(self, kind: str, value: float = 0.0, name: str = "", part: bytes = b"") -> None:
        self._serial += 1
        try:
            self._launched.say(Order(self._serial, kind, value, name, part))
        except RunError:
            if not self._launched.wait(0):  # that it has ended is met where one listens
                raise

    def _say_to_all(self, word: object) -> None:
        """To every rank, from any thread; who has ended need not hear it."""
        for rank in range(len(self._launch.workers) if self._launch is not None else 0):
            self._say_to(rank, word)

    def _say_to_first(self, word: object) -> None:
        """The same, to rank 0 alone."""
        if self._launch is not None:
            self._say_to(0, word)

    def _say_to(self, rank: int, word: object) -> None:
        with suppress(RunError):  # it has ended
            self._launched.say(word, rank)

    def _ask(self, kind: str, value: float = 0.0) -> None:
        """Order, and wait until the ranks are held after it."""
        self._order(kind, value)
        serial = self._serial
        self._listen(lambda: self._held >= serial)

    def _listen(self, enough: Callable[[], bool], seconds: float = math.inf) -> None:
        """Take words until it is enough, the ranks have ended, or so much time has passed."""
        launch, until = self._launched, monotonic() + seconds
        self._since = self._since or monotonic()
        while not self._over and not enough() and monotonic() < until:
            words = launch.hear(min(LISTENS, seconds))
            for _, word in words:
                self._take(word)
            if words or self.hopping.is_held:  # who is held at a hop waits for a person
                self._since = monotonic()
            if not words and launch.wait(0):
                self._end()
        if self._over or (enough() and not self._queues):
            self._since = 0.0

    def _take(self, word: At | Held | AtHop | AtTick) -> None:
        if isinstance(word, AtHop | AtTick):
            self._launched.catch_up()  # who sees that ranks are held finds what they have sent in the recording
            self.hopping.heard(word)
            return
        self.step = max(self.step, word.step) if isinstance(word, At) else word.step
        if isinstance(word, Held):
            is_first = self._held < 0
            self._held, self._trouble = word.serial, word.trouble
            self._going = self._going and word.serial < self._serial
            if word.standing is not None:
                self._stand(word.standing, keeps_edits=is_first)

    def _end(self) -> None:
        """Take over what the ranks left, or raise what ended them."""
        self._over, self._going = True, False
        try:
            standing = self._launched.result()[0]
        except RankError as error:
            if isinstance(why := error.__cause__, LabError):  # it speaks of the training, as it would without ranks
                why.add_note(error.traceback)
                raise why from None
            raise
        self._stand(standing)

    def _stand(self, standing: Any, keeps_edits: bool = False) -> None:
        edited = self._edited() if keeps_edits else None
        self.training.stand(standing)
        self.step = self.training.step
        self._theirs = self._checksum()
        if edited is not None:  # while the run waited for workers
            self.training.optimizer.restore(edited)
