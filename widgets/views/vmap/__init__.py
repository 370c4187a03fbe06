"""VmapView: a function of one member run for all at once, its axis inserted operation by operation."""
