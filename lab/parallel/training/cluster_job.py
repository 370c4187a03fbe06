"""A training that ranks on a cluster carry out, as a job of an ordinary run in this process.

The run's thread asks for steps, holds and changes; orders go to rank 0, words come back. The training that stays here
stands where the ranks stood when they were last held, or at the end: whole, or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from time import monotonic

from lab.autograd import Tensor
from lab.errors import MeshError, RunError
from lab.events.bus import bus
from lab.events.gate import leave_out
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.cluster.silence import QUIET
from lab.parallel.training.edits import parts_of
from lab.parallel.training.hopping import Hopping
from lab.parallel.training.keeping import Going, packed_base
from lab.parallel.training.led import LISTENS, Led
from lab.parallel.training.restarts import waits_for
from lab.parallel.training.tale import Homecoming
from lab.training.result import Result
from lab.words import counted

SAYS = 1.0
"""Seconds of waiting after which it is said for what."""
ENDS = 10.0
"""Seconds that a launch has to end when its job is closed; after that only the scheduler can help."""


class ClusterJob(Led):
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
        restarts: how it goes on after a loss; then the program takes a `Going` as its last argument.
        options: of the launch.

    Raises:
        ArgumentError: the training cannot be sent to workers.
        MeshError: a script would start workers whenever it is imported.
    """

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
        if launch.state == "waiting" and self._crew is not None:
            return waits_for(self._crew)
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
        self._run, self._tale = run, Homecoming(run)
        self._tale.start()
        self._first = Going(self._restarts.key)
        if self.training.is_resumed:
            self._first = self._first._replace(base=packed_base(self.training), source="disk")
        self._start(self._first)
        self._has_news = True

    def run_ahead(self) -> None:
        self._ahead = True

    def ready(self) -> bool:
        self._listen(lambda: self._held >= 0, LISTENS)  # the ranks have not begun, and may have to wait for workers
        return self._over or self._held >= 0

    def hold(self) -> None:
        self._ahead = False
        if self._going:
            self._ask("hold")
        self._listen(lambda: self._held >= 0 or self._queues)  # ranks begin held, if they have begun
        while not self._over and self._launched.wait(0):  # a launch that ended although it was held has lost a rank
            self._end()
            self._listen(lambda: self._held >= 0)
        if self._has_news and not self._over:
            self._launched.catch_up()  # who sees that the run is paused shall find its last step in the recording
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
        self.training.bound(name, value)
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
            self._launched.catch_up()
            bus.flush()
            self._tale.known = self._tale.known.back_at(self.step)

    def result(self, run: str, state: str, elapsed_ms: float) -> Result:
        if not self._over and self._queues:
            self._over = True  # no rank has begun: nothing is to be taken over, and close() does the rest
        elif not self._over:
            edited = None if self._going else self._edits.found()
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
        # Who has done all steps has nothing to be stopped in: if it does not end, it is lost, and that is found out.
        patience = max(self._patience, QUIET) + QUIET if self.finished else self._patience
        n_restarts = -1
        while n_restarts != self._restarts.n:
            n_restarts = self._restarts.n
            self._listen(lambda: self._queues, patience)
        if not self._over and self._queues:  # it was not known before that all workers are busy
            self._over = True
        elif not self._over:  # a rank does not come to the end of its step
            self._is_closing = True
            self._launched.stop()
            self._end()

    def close(self) -> None:
        self._over, self._is_closing, self._since = True, True, monotonic()
        self._tale.end()
        if self._launch is not None:
            self._launch.stop()
            self._launch.wait(ENDS)
        if self._cluster is not None and self._restarts.key:
            self._cluster.forget(self._restarts.key)
        if self._cluster is not None and self._cluster is not self._where:
            self._cluster.close()
        self._since = 0.0

    def _send_what_was_edited(self) -> RunError | None:
        """Give the ranks, which are held, what somebody wrote into the model here; the reason if it is too much."""
        if (edited := self._edits.found()) is None:
            return None
        try:
            parts = parts_of(edited)
        except RunError as too_much:
            return too_much
        for part in parts:
            self._order("part", len(part), part=part)
        self._order("load")
        self._given.stood(self._serial)
        self._edits.are_known()
        return None
