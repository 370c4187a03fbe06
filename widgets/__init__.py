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
    from widgets.export.several import export_page as export_page
    from widgets.live.look import Look as Look
    from widgets.panel import ClusterPanel as ClusterPanel
    from widgets.pictures.chart import Chart as Chart
    from widgets.pictures.scene import Edge as Edge
    from widgets.pictures.scene import Node as Node
    from widgets.pictures.scene import Scene as Scene
    from widgets.pictures.scene import Token as Token
    from widgets.player.player import Player as Player
    from widgets.player.side_by_side import SideBySide as SideBySide
    from widgets.plots import tangent as tangent
    from widgets.view import View as View
    from widgets.views.broadcast.view import BroadcastView as BroadcastView
    from widgets.views.capture.view import CaptureView as CaptureView
    from widgets.views.cluster.view import ClusterView as ClusterView
    from widgets.views.collective.compare import CompareCollectives as CompareCollectives
    from widgets.views.collective.ring import RingView as RingView
    from widgets.views.collective.view import CollectiveView as CollectiveView
    from widgets.views.contributions.view import ContributionView as ContributionView
    from widgets.views.data_parallel.view import DataParallelView as DataParallelView
    from widgets.views.difference.view import DifferenceView as DifferenceView
    from widgets.views.dual.view import DualView as DualView
    from widgets.views.experiments.accumulation import AccumulationView as AccumulationView
    from widgets.views.experiments.buckets import BucketView as BucketView
    from widgets.views.experiments.building import BuildView as BuildView
    from widgets.views.experiments.calls import CallsView as CallsView
    from widgets.views.experiments.cost import CostView as CostView
    from widgets.views.experiments.errors import ErrorView as ErrorView
    from widgets.views.experiments.means import MeansView as MeansView
    from widgets.views.experiments.memory import MemoryView as MemoryView
    from widgets.views.experiments.memory_plan import MemoryPlanView as MemoryPlanView
    from widgets.views.experiments.orders import OrdersView as OrdersView
    from widgets.views.experiments.passes import PassesView as PassesView
    from widgets.views.experiments.rewrite.view import RewriteView as RewriteView
    from widgets.views.experiments.root_link import RootLinkView as RootLinkView
    from widgets.views.experiments.rule import RuleView as RuleView
    from widgets.views.experiments.slopes import SlopesView as SlopesView
    from widgets.views.experiments.spread import SpreadView as SpreadView
    from widgets.views.experiments.swell import SwellView as SwellView
    from widgets.views.experiments.times import TimesView as TimesView
    from widgets.views.graph.view import GraphView as GraphView
    from widgets.views.layers.view import LayersView as LayersView
    from widgets.views.pipeline.view import PipelineView as PipelineView
    from widgets.views.prefetch.view import PrefetchView as PrefetchView
    from widgets.views.retraces.view import RetraceView as RetraceView
    from widgets.views.schedule.view import ScheduleView as ScheduleView
    from widgets.views.training.gradient import GradientView as GradientView
    from widgets.views.training.loss import LossView as LossView
    from widgets.views.training.recovery import RecoveryView as RecoveryView
    from widgets.views.visits.view import VisitsView as VisitsView
    from widgets.views.vmap.view import VmapView as VmapView
    from widgets.views.why.view import WhyView as WhyView

_HOME: dict[str, str] = {
    "GraphView": "views.graph.view", "LossView": "views.training.loss", "GradientView": "views.training.gradient",
    "RewriteView": "views.experiments.rewrite.view",
    "RingView": "views.collective.ring", "CollectiveView": "views.collective.view",
    "DataParallelView": "views.data_parallel.view",
    "WhyView": "views.why.view", "ContributionView": "views.contributions.view",
    "DualView": "views.dual.view", "VisitsView": "views.visits.view",
    "BroadcastView": "views.broadcast.view", "VmapView": "views.vmap.view", "LayersView": "views.layers.view",
    "ClusterPanel": "panel", "OrdersView": "views.experiments.orders", "SpreadView": "views.experiments.spread",
    "BucketView": "views.experiments.buckets", "AccumulationView": "views.experiments.accumulation",
    "MeansView": "views.experiments.means",
    "RecoveryView": "views.training.recovery",
    "PipelineView": "views.pipeline.view", "ClusterView": "views.cluster.view",
    "ErrorView": "views.experiments.errors", "CostView": "views.experiments.cost",
    "SwellView": "views.experiments.swell", "SlopesView": "views.experiments.slopes",
    "PassesView": "views.experiments.passes", "CallsView": "views.experiments.calls",
    "BuildView": "views.experiments.building", "CaptureView": "views.capture.view",
    "RetraceView": "views.retraces.view",
    "ScheduleView": "views.schedule.view",
    "MemoryPlanView": "views.experiments.memory_plan",
    "CompareCollectives": "views.collective.compare",
    "TimesView": "views.experiments.times", "RootLinkView": "views.experiments.root_link",
    "PrefetchView": "views.prefetch.view",
    "RuleView": "views.experiments.rule", "MemoryView": "views.experiments.memory",
    "Player": "player.player", "SideBySide": "player.side_by_side", "DifferenceView": "views.difference.view",
    "RunControls": "controls", "Dashboard": "board", "dashboard": "board",
    "Lesson": "cards", "Lines": "cards", "tangent": "plots", "export_page": "export.several", "Look": "live.look",
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
