"""Widgets of our own that hear their kernel in a busy page, too: `frontend/late.js` has the page's side."""

from __future__ import annotations

import uuid

import anywidget
import traitlets


class Heard(anywidget.AnyWidget):
    """A widget that knows what its model is called, so that its code in the page can reach that.

    Example:
        >>> widget = Heard()
        >>> widget.own_id == widget.model_id
        True
        >>> widget.close()
    """

    _esm = "export default {}"
    own_id = traitlets.Unicode().tag(sync=True)

    def __init__(self, **traits: object) -> None:
        own_id = uuid.uuid4().hex
        super().__init__(model_id=own_id, own_id=own_id, **traits)
