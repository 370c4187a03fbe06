"""What the kernel answers when a reloaded page asks for all widgets: one message, small and quick to make.

The page waits 4 seconds for it, and goes on to ask each widget by itself, which takes minutes while a run trains. So
what is large stays out (pictures and plotly.js come when their place in the page asks) and so does what says nothing.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from lab.errors import ViewError

TARGET: Final = "jupyter.widget.control"
"""Where the page asks; protocol 1.0.0 of ipywidgets: "request_states" is answered by "update_states"."""

_lock = threading.Lock()
_served: list[object] = []


def states() -> tuple[dict[str, Any], list[Any]]:
    """The message "update_states" with its buffers: what `ipywidgets` would send, without what can come later.

    Layouts and styles say only what was set; the page has the same defaults. A widget that has a `restored_state`
    says itself what the page has to know at once.

    Example:
        >>> message, buffers = states()
        >>> message["method"], len(buffers) == len(message["buffer_paths"])
        ('update_states', True)
    """
    from ipywidgets import Layout
    from ipywidgets.widgets.widget import _instances, _remove_buffers
    from ipywidgets.widgets.widget_style import Style

    found: dict[str, Any] = {}
    for widget in tuple(_instances.values()):  # the thread of the pacer may make or close some meanwhile
        if widget.comm is None:
            continue
        if isinstance(widget, (Layout, Style)):
            state = widget.get_state(drop_defaults=True)
        else:
            state = getattr(widget, "restored_state", widget.get_state)()
        found[widget.model_id] = {
            "model_name": widget._model_name, "model_module": widget._model_module,
            "model_module_version": widget._model_module_version, "state": state,
        }  # fmt: skip
    found, paths, buffers = _remove_buffers(found)
    return {"method": "update_states", "states": found, "buffer_paths": paths}, buffers


def opened(comm: Any, message: Any) -> None:
    """A page opened its control comm: answer on it."""
    version = message.get("metadata", {}).get("version", "")
    if version.partition(".")[0] != "1":
        raise ViewError("the page speaks another protocol of widgets", given=repr(version), hint="install ipywidgets 8")

    def asked(question: Any) -> None:
        if question["content"]["data"].get("method") == "request_states":
            data, buffers = states()
            comm.send(data, buffers=buffers)

    comm.on_msg(asked)


def serve() -> None:
    """Answer pages from now on; nothing where no kernel runs. Called with the first picture or control."""
    import comm

    with _lock:
        manager = comm.get_comm_manager()
        if manager in _served or not hasattr(manager, "register_target"):
            return
        manager.register_target(TARGET, opened)
        _served.append(manager)
