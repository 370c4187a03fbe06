"""Pictures of what the lab recorded: views, the player, controls of a training. Names are loaded when first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from widgets.board import Dashboard as Dashboard
    from widgets.board import dashboard as dashboard
    from widgets.cards import Lesson as Lesson
    from widgets.cards import Lines as Lines
    from widgets.controls import RunControls as RunControls
    from widgets.pictures.chart import Chart as Chart
    from widgets.pictures.scene import Edge as Edge
    from widgets.pictures.scene import Node as Node
    from widgets.pictures.scene import Scene as Scene
    from widgets.pictures.scene import Token as Token
    from widgets.player import Player as Player
    from widgets.plots import tangent as tangent
    from widgets.view import View as View
    from widgets.views.cluster import ClusterView as ClusterView
    from widgets.views.data_parallel import DataParallelView as DataParallelView
    from widgets.views.gradient import GradientView as GradientView
    from widgets.views.graph import GraphView as GraphView
    from widgets.views.loss import LossView as LossView
    from widgets.views.pipeline import PipelineView as PipelineView
    from widgets.views.ring import RingView as RingView

_HOME: dict[str, str] = {
    "GraphView": "views.graph", "LossView": "views.loss", "GradientView": "views.gradient",
    "RingView": "views.ring", "DataParallelView": "views.data_parallel",
    "PipelineView": "views.pipeline", "ClusterView": "views.cluster",
    "Player": "player", "RunControls": "controls", "Dashboard": "board", "dashboard": "board",
    "Lesson": "cards", "Lines": "cards", "tangent": "plots",
    "View": "view", "Scene": "pictures.scene", "Node": "pictures.scene", "Edge": "pictures.scene",
    "Token": "pictures.scene", "Chart": "pictures.chart",
}  # fmt: skip
"""Where each public name lives."""

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"widgets.{_HOME[name]}"), name)
    raise AttributeError(f"module 'widgets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HOME)
