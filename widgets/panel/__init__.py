"""The cluster panel: buttons that act on real workers, and a picture of them from events."""

from widgets.panel.panel import ClusterPanel as ClusterPanel
