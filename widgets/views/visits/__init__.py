"""VisitsView: a backward walk with the topological order and without it."""
