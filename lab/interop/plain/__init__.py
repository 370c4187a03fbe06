"""A graph as one file of Python that needs NumPy alone: the functions it may bring along, and how lines are written."""
