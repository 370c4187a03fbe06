"""The ranks of a training through all its launches: orders go out, words come in, others take the places of the lost.

The training that stays here stands where the ranks stood when they were last held, or at the end: whole, or not at all.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from lab.errors import LabError, LostRankError, MeshError, RankError, RunError
from lab.events import Event, TrainingResumed
from lab.events.bus import bus
from lab.parallel.cluster.cluster import Cluster, require_guard
from lab.parallel.cluster.launching import Launch
from lab.parallel.cluster.need import Need
from lab.parallel.ranks.hops import AtHop
from lab.parallel.ranks.ticks import AtTick
from lab.parallel.training.edits import Edits
from lab.parallel.training.hopping import Hopping
from lab.parallel.training.keeping import Going, NothingKeptError, Resumed, going_on
from lab.parallel.training.packing import packed
from lab.parallel.training.restarts import Crew, OrderLog, Restarts, nobody_came
from lab.parallel.training.steering import At, Held, Order
from lab.parallel.training.tale import Homecoming
from lab.training.job import RECORDED
from lab.training.trainer import Training
from lab.words import counted

if TYPE_CHECKING:
    from distributed import Client

log = logging.getLogger("lab.parallel")

LISTENS = 0.5
"""Seconds after which it looks whether the launch has ended, if it hears nothing."""

Program = Callable[..., Any]
"""`program(comm, payload, run, *args)`, on every rank: `unpacked(payload)` is a copy of the training, `run` the name of
its run; it is led by a `Steering`, and what it returns on rank 0 is what the training stands at in the end."""


class Led:
    """A training and the ranks that do its steps; what a run asks of them is in `ClusterJob`, and its arguments.

    Attributes:
        payload: the training as it is sent.
        hopping: holds the ranks within their steps.
        need: memory that each rank will take, if that is known.
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
        restarts: Restarts | None = None,
        **options: Any,
    ) -> None:
        import sys

        if cluster is None:
            require_guard(sys._getframe(1))
        self.training, self.n_steps, self.step = training, training.n_steps, training.step
        self.kinds, self._program, self._args, self.payload = kinds, program, args, packed(training)
        self._where, self._world_size, self._options = cluster, world_size, {"timeout": timeout, **options}
        self._patience, self._restarts = timeout, restarts or Restarts()
        self._run, self._given, self._tale = "", OrderLog(), Homecoming("")
        self._crew: Crew | None = None  # of the launch under way, where it goes on after a loss
        self._is_told = True  # where the ranks of this launch began; until then orders wait
        self._loss: LostRankError | None = None
        self._lost: tuple[float, int] | None = None  # when which rank was, until the ranks have gone on
        self._resumed, self._troubled = Resumed(0, 0, "", is_held=True), (0, -1)
        self._goes_on, self._has_stood = restarts is not None, False
        self._first = Going()  # what the first launch was told
        # What holds a pipeline is an agreement of all ranks; before a step of a collective each is held by itself.
        self.hopping = Hopping(units, self._order, self._say_to_first if "action" in units else self._say_to_all)
        self.need: Need | None = None
        self._cluster: Cluster | None = None
        self._launch: Launch | None = None
        self._over = self._ahead = self._going = self._has_news = self._is_closing = False
        self._since = 0.0  # when the waiting began that is under way; 0 for none
        self._serial, self._held = 0, -1  # the last order, and the last that ranks carried out and then stood still
        self._trouble: RunError | None = None
        self._edits = Edits(training.optimizer)

    # --- orders and words

    @property
    def _launched(self) -> Launch:
        assert self._launch is not None, "the run has begun"
        return self._launch

    @property
    def _queues(self) -> bool:
        """Whether no rank has begun, for all workers are busy."""
        return self._launched.state == "waiting" and bool(self._launched.waits_for) and self._crew is None

    def _order(self, kind: str, value: float = 0.0, name: str = "", part: bytes = b"") -> None:
        self._serial += 1
        order = Order(self._serial, kind, value, name, part)
        self._given.add(order)
        if self._is_told:
            self._send(order)

    def _send(self, order: Order) -> None:
        try:
            self._launched.say(order)
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
        until = monotonic() + seconds
        self._since = self._since or monotonic()
        while not self._over and not enough() and monotonic() < until:
            launch = self._launched
            words = launch.hear(min(LISTENS, seconds))
            for _, word in words:
                self._take(word)
            if words or self.hopping.is_held:  # who is held at a hop waits for a person
                self._since = monotonic()
            if not words and launch.wait(0):
                self._end()
        if self._over or (enough() and not self._queues):
            self._since = 0.0

    def _take(self, word: At | Held | AtHop | AtTick | Resumed) -> None:
        if isinstance(word, Resumed):
            self._begun(word)
            return
        if isinstance(word, AtHop | AtTick):
            self._launched.catch_up()  # who sees that ranks are held finds what they have sent in the recording
            self.hopping.heard(word)
            return
        self.step = max(self.step, word.step) if isinstance(word, At) else word.step
        if self._lost is not None:
            self._tell_resumed()
        self._given.carried_out(word.serial)
        if isinstance(word, Held):
            # Nobody has trained here since the pause: what differs was written by hand.
            is_first = self._held < 0 or (self._crew is not None and word.step == self.training.step)
            self._held, self._trouble = word.serial, word.trouble
            if word.trouble is not None and self._troubled == (word.serial, word.step):
                self._trouble = None  # it was met before the loss, and answered
            self._troubled = (word.serial, word.step) if word.trouble is not None else self._troubled
            self._going = self._going and word.serial < self._serial
            if word.standing is not None:
                self._stand(word.standing, keeps_edits=is_first)
                self._given.stood(word.serial)
                self._has_stood = True

    def _end(self) -> None:
        """Take over what the ranks left, go on with others, or raise what ended them."""
        try:
            standing = self._launched.result()[0]
        except LostRankError as error:
            self._go_on(error)
            return
        except RankError as error:
            self._over, self._going = True, False
            if isinstance(error.__cause__, NothingKeptError):
                self._go_on(LostRankError("all ranks were lost", given=error.given, hint="", rank=-1))
                return
            if isinstance(why := error.__cause__, LabError):  # it speaks of the training, as it would without ranks
                why.add_note(error.traceback)
                raise why from None
            raise
        except BaseException as error:
            self._over, self._going = True, False
            if isinstance(error, MeshError) and self._crew is not None and not self._launched.workers:
                raise nobody_came(self._loss, error) from None
            raise
        self._over, self._going = True, False
        if self._lost is not None:
            self._tell_resumed()
        self._stand(standing)

    # --- after a loss

    def _start(self, going: Going, crew: Crew | None = None) -> None:
        assert self._cluster is not None, "the run has begun"
        self._crew, self._is_told = crew, crew is None
        args = (self.payload, self._run, *self._args, *((going,) if self._goes_on else ()))
        more: dict[str, Any] = {"keeps": crew.keeps} if crew else {}
        world_size = crew.world_size if crew else self._world_size
        self._launch = self._cluster.start(self._program, *args, world_size=world_size, shelf=going.key,
                                           need=self.need, **more, **self._options)  # fmt: skip

    def _go_on(self, error: LostRankError) -> None:
        """Launch again, with another worker in the place of the lost one, or with fewer ranks."""
        restarts, old, self._loss = self._restarts, self._launched, error
        if not restarts.key or restarts.n >= restarts.most or self._is_closing:
            self._over, self._going = True, False
            raise restarts.refusal(error)
        restarts.n += 1
        lost_s = old.lost_s or monotonic()
        self._lost = (min(lost_s, self._lost[0]) if self._lost else lost_s), error.rank
        there = old.still_there() if error.rank >= 0 else []
        bus.flush()  # what came home is known
        going = self._first._replace(attempt=restarts.n, known=self._tale.known)
        if self._has_stood:
            going = going_on(going, self.training, self.payload, self._given.base, are_any_left=bool(there))
        crew = restarts.crew(error.rank, old.workers, there)
        log.info("%s; the run goes on with %s", error.problem, counted(crew.world_size, "rank"))
        self._over, self._held = False, -1
        self._start(going, crew)

    def _begun(self, word: Resumed) -> None:
        """The ranks stand where they begin, and hear what they have not heard."""
        if self._is_told:
            return
        self._is_told, self._resumed, self.step = True, word, word.step
        self._held = -1 if word.is_held else 0
        self._given.carried_out(word.serial)
        for order in self._given.after(word.serial):
            self._send(order)
        self.hopping.again()

    def _tell_resumed(self) -> None:
        assert self._lost is not None, "a rank was lost"
        assert self._crew is not None, "and others went on"
        (lost_s, rank), self._lost = self._lost, None
        if bus.listeners:
            elapsed_ms = 1000 * (monotonic() - lost_s)
            at = self._resumed
            bus.emit(TrainingResumed(self._restarts.n, at.step, rank, self._crew.world_size, at.source, elapsed_ms))

    def _stand(self, standing: Any, keeps_edits: bool = False) -> None:
        edited = self._edits.found() if keeps_edits else None
        self.training.stand(standing)
        self.step = self.training.step
        self._edits.are_known()
        if edited is not None:  # while the run waited for workers
            self.training.optimizer.restore(edited)
