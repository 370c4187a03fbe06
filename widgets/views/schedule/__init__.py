"""Schedules of graphs and of loading: who ran what when, in which thread."""
