"""Asking why: the entries of a gradient to choose from, and the paths that make up the chosen one."""
