"""RunControls: progress, pause, step, stop, breakpoints and the learning rate of a training that runs in its thread.

A click only sets a flag that the run looks at between two steps; what the controls show is read from the run at each
tick of the pacer, so that they are right after a reload, after a pause from code, and after a failure.
"""

from __future__ import annotations

import contextvars
import logging
import math
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from lab.errors import LabError, ViewError
from lab.words import shown
from widgets.controls.breakpoints import Breakpoints
from widgets.controls.step_picture import StepPicture
from widgets.explosion import exploded
from widgets.live.buttons import free_of_blocked_cell, pixels
from widgets.live.showing import close
from widgets.live.slider import Progress, Slider
from widgets.pictures.theme import short
from widgets.view import wording_of

log = logging.getLogger("widgets.controls")

UNIT_WORDS: Mapping[str, str] = {
    "step": "training step", "op": "operation", "node": "backward node", "hop": "collective step",
    "action": "pipeline action",
}  # fmt: skip
ENDED = ("finished", "stopped", "failed")
WORDS: Mapping[str, str] = {
    "running": "▶ running", "paused": "‖ paused", "stopping": "■ stopping", "finished": "✓ finished",
    "stopped": "■ stopped", "failed": "✗ failed",
}  # fmt: skip


class RunControls:
    """Controls of one run. The last line of a cell displays them.

    Args:
        run: what `lab.fit` returned.
        hyperparameters: which of `run.hyperparameters` get a slider.

    Raises:
        ViewError: `run` is no training run.
    """

    def __init__(self, run: Any, *, hyperparameters: Sequence[str] = ("learning_rate",)) -> None:
        if not all(hasattr(run, name) for name in ("recording", "hyperparameters", "pause")):
            raise ViewError(
                "controls and dashboards are of a training run", given=wording_of(run),
                hint="run = lab.fit(model, train); dashboard(run)",
            )  # fmt: skip
        self.run, self.hyperparameters = run, _names(hyperparameters)
        self._widget: Any = None
        self._parts: dict[str, Any] = {}
        self._sliders: dict[str, Any] = {}
        self._known: dict[str, float] = {}
        self._told: dict[Any, set[str]] = {}
        """Which traits of which widget follow the run."""
        self._misses = False  # a page may have missed news
        self._lock = threading.RLock()
        self._message = ""
        self._breakpoints: Any = None
        self._step_picture: Any = None

    @property
    def widget(self) -> Any:
        """The controls as an ipywidgets DOMWidget."""
        with self._lock:
            if self._widget is None:
                self._widget = self._build()
                self._watch()
        return self._widget

    def _build(self) -> Any:
        import ipywidgets as ipw

        from widgets.live.buttons import button, ringed
        from widgets.live.spoken import Spoken

        def made(name: str, icon: str, tooltip: str, action: Callable[[], object], style: str = "") -> Any:
            self._parts[name] = button(name, icon, tooltip, lambda: self._ask(action), style=style)
            return self._parts[name]

        bar = Progress(layout=ipw.Layout(flex=f"1 1 {pixels(260)}", min_width=pixels(200)))
        where = ipw.Label(layout=ipw.Layout(min_width=pixels(150)))
        self._parts |= {"bar": bar, "where": where, "text": Spoken(twin=uuid.uuid4().hex)}
        self._parts["text"].on_msg(self._seen)
        buttons = [
            made("Pause", "pause", "Hold after the current step, or go on", self._pause_or_resume),
            made("Step", "step-forward", "Let one more pass, then hold: a step, or what is chosen", self._step),
            made("Stop", "stop", "End after the current step; what was learnt is kept", self.run.stop),
        ]
        back = made(
            "Back to sound state", "undo", "Go back to the last parameters without nan, and hold there",
            self._rewind, "warning",
        )  # fmt: skip
        back.layout.display = "none"
        self._parts["Pause"].add_class("lab-once")
        by = ringed(ipw.Dropdown(
            description="Step by", options=[(UNIT_WORDS[u], u) for u in self.run.units],
            tooltip="What one click on Step lets pass", layout=ipw.Layout(width=pixels(250)),
        ))  # fmt: skip
        by.layout.display = "" if len(self.run.units) > 1 else "none"
        self._parts["by"] = by
        self._breakpoints = Breakpoints(self.run, self._ask)
        self._step_picture = StepPicture(self.run, self._parts["Step"].focus)
        has = self.run.hyperparameters
        self._sliders |= {name: self._slider(name, has[name]) for name in self.hyperparameters if name in has}
        row = ipw.Layout(display="flex", flex_flow="row wrap", align_items="center", width="100%")
        self.refresh()
        return ipw.VBox([
            ipw.Box([bar, where, *buttons, by, back], layout=row),
            ipw.Box(list(self._sliders.values()), layout=row),
            self._breakpoints.widget,
            self._parts["text"],
            self._step_picture.widget,
        ])  # fmt: skip

    def _slider(self, name: str, value: float) -> Any:
        """A slider around the value that the run has; hyperparameters that are positive get a logarithmic one."""
        words = name.replace("_", " ")
        scale: dict[str, Any] = {"min": min(0.0, value), "max": 1.0, "step": 0.01}
        if value > 0:
            middle = math.log10(value)
            scale = {"min": math.floor(middle - 2), "max": math.ceil(middle + 2), "step": 0.05, "log": True}
        made = Slider(
            description=words.capitalize(), tooltip=f"{words}, from the next step on", value=value, **scale
        )  # fmt: skip
        self._known[name] = value
        made.observe(lambda change: self._set(name, float(change["new"])), "value")
        return made

    # --- clicks: flags only ---

    def _ask(self, action: Callable[[], object]) -> None:
        """Do what a click asks; what that says or the run refuses is shown, never raised into the page."""
        self._message = ""  # before: what the action starts may have something to say
        try:
            said = action()
            self._message = said if isinstance(said, str) else self._message
        except LabError as why:
            self._message = str(why)
        self.refresh()

    def _pause_or_resume(self) -> None:
        if self.run.state == "paused":
            self.run.resume()
        else:
            self.run.pause()

    def _step(self) -> None:
        self.run.step(of=self._parts["by"].value)

    def _rewind(self) -> None:
        """The run waits for its step to end before it goes back: not in the thread that handles clicks."""

        def work() -> None:
            self._ask(self.run.rewind)
            if not self._message:
                then = self._after_rewind()
                self._message = f"Back at step {self.run.progress[0]:,}, where the state was sound.{then}"
                self.refresh()

        threading.Thread(target=contextvars.copy_context().run, args=(work,), name="lab-rewind", daemon=True).start()

    def _after_rewind(self) -> str:
        """How one goes on from there."""
        if self.run.state in ENDED:
            return " This run has ended: another one, of the same model, goes on from here."
        rate = self.run.hyperparameters.get("learning_rate")
        return "" if rate is None else f" The learning rate is still {short(rate)}: lower it, then go on."

    def _set(self, name: str, value: float) -> None:
        if value != self._known.get(name):
            self._known[name] = value
            self._ask(lambda: self.run.set(name, value))

    # --- what is shown ---

    def _watch(self) -> None:
        from widgets.live import pacer

        pacer.forget(self._tick)
        pacer.every(self._tick)

    def _tick(self) -> None:
        from widgets.live import pacer

        ended = self.run.state in ENDED  # asked before: the last state is shown after it
        self.refresh()
        if self._misses:
            self._misses = False
            self._say_again()
        if ended:
            pacer.forget(self._tick)

    def tick_failed(self, why: BaseException) -> None:
        """They are not called any more because they raised: say so where their words are."""
        with self._lock:
            if self._parts:
                words = f"These controls stopped following their run: {type(why).__name__}: {why}"
                self._parts["text"].text = f"{words}\nThe buttons still work."

    @property
    def text(self) -> str:
        """State and progress in words, with the reason of a failure."""
        step, n_steps = self.run.progress
        of = f" of {n_steps:,}" if n_steps else ""
        reason = self._trouble()
        return f"{WORDS.get(self.run.state, self.run.state)}, step {step:,}{of}{f': {reason}' if reason else ''}"

    def refresh(self) -> None:
        """Show what the run says now; sends only what changed."""
        with self._lock:
            if not self._parts:
                return
            state, (step, n_steps) = self.run.state, self.run.progress
            ended = state in ENDED
            parts = self._parts
            share = step / n_steps if n_steps else float(ended)
            self._put(
                parts["bar"],
                value=round(min(1.0, share), 3),
                bar_style={"failed": "danger", "finished": "success"}.get(state, ""),
            )
            self._put(parts["where"], value=f"step {step:,}{f' of {n_steps:,}' if n_steps else ''}")
            paused = state == "paused"
            self._put(parts["Pause"], description="Resume" if paused else "Pause", icon="play" if paused else "pause",
                 disabled=ended or state == "stopping")  # fmt: skip
            self._put(parts["Step"], disabled=ended or state == "stopping")
            self._put(parts["by"], disabled=ended)
            self._put(parts["Stop"], disabled=ended)
            self._step_picture.refresh()
            reason = self._trouble()
            self._put(parts["Back to sound state"].layout, display="" if self._is_unsound() else "none")
            self._put(parts["text"], text="\n".join(filter(None, (self._spoken(state, reason), self._message))))
            for name, slider in self._sliders.items():
                value = slider.within(self.run.hyperparameters.get(name, slider.value))
                if value != self._known.get(name):  # set by code or by a schedule, not by this slider
                    self._known[name] = value
                    self._put(slider, value=value)
                self._put(slider, disabled=ended)
            self._breakpoints.refresh(ended=ended)

    def _put(self, widget: Any, **values: object) -> None:
        """Set traits that differ, and keep the clicks of a button free."""
        self._told.setdefault(widget, set()).update(values)
        changed = {name: value for name, value in values.items() if getattr(widget, name) != value}
        for name, value in changed.items():
            setattr(widget, name, value)
        if changed:
            free_of_blocked_cell(widget)

    def _seen(self, _widget: object, content: object, _buffers: object) -> None:
        """A page shows the controls: the next tick says what was said between the page's question and its listening.

        Not this thread: the kernel hands what a page says of a widget to the thread that wrote to that widget last, and
        of two widgets, as a field and its button, it would come out of order.
        """
        if isinstance(content, dict) and content.get("shown"):
            self._misses = True
            self._watch()

    def _say_again(self) -> None:
        """Send what follows the run to the page once more."""
        with self._lock:
            for widget, names in self._told.items():
                widget.send_state(names)
                free_of_blocked_cell(widget)
            for part in (self._breakpoints, self._step_picture):
                part.say_again()

    def _is_unsound(self) -> bool:
        """Whether going back may help: the run is in trouble, and not only held where somebody wanted it."""
        step = self.run.progress[0]  # a run that never began has nothing to go back to
        trouble = getattr(self.run, "trouble", None) is not None or (self.run.state == "failed" and step > 0)
        return trouble or bool(exploded(self.run.recording, step))

    def _trouble(self) -> str:
        """Why the run holds, waits or has failed, with the operation where it began; or that its loss exploded."""
        reason, trouble = getattr(self.run, "reason", ""), getattr(self.run, "trouble", None)
        if reason:
            where = getattr(trouble, "given", "") or self._box()
            return f"{reason}{f': {where}' if where else ''}"
        return getattr(self.run, "waits_for", "") or exploded(self.run.recording, self.run.progress[0])

    def _box(self) -> str:
        """Which box of the picture below the reason is about, by the name that it has there."""
        box = self._step_picture.box if self._step_picture is not None else ""
        return f"{box} of the picture" if box else ""

    def _spoken(self, state: str, reason: str) -> str:
        """State changes are spoken, not each step; a pause is answered at once, though its step may last."""
        if state == "running" and getattr(self.run, "is_pausing", False):
            return f"‖ pausing after this step{f': {waits}' if (waits := getattr(self.run, 'waits_for', '')) else ''}"
        return f"{WORDS.get(state, state)}{f': {reason}' if reason else ''}"

    def dispose(self) -> None:
        """Take the controls out of the page and the kernel; the run goes on."""
        from widgets.live import pacer

        pacer.forget(self._tick)
        with self._lock:
            self._parts, self._sliders, self._told = {}, {}, {}
            if self._step_picture is not None:
                self._step_picture.dispose()
            widget, self._widget = self._widget, None
        if widget is not None:
            close(widget)

    def __repr__(self) -> str:
        return f"RunControls({self.text})"

    def _ipython_display_(self) -> None:
        from IPython.display import display

        show: Any = display  # untyped
        bundle = self.widget._repr_mimebundle_()
        still = f'<div data-lab-twin="{self._parts["text"].twin}">{escape(self.text)}</div>'
        show({"text/html": still, "text/plain": self.text}, raw=True)
        show({**(bundle[0] if isinstance(bundle, tuple) else bundle), "text/plain": self.text}, raw=True)


def _names(hyperparameters: object) -> tuple[str, ...]:
    """Names of hyperparameters, in a list or a tuple."""
    if isinstance(hyperparameters, (list, tuple)) and all(isinstance(name, str) for name in hyperparameters):
        return tuple(hyperparameters)
    raise ViewError("sliders are of hyperparameters by name", given=f"hyperparameters={shown(hyperparameters)}",
                    hint='a tuple of names: hyperparameters=("learning_rate",)')  # fmt: skip
