"""The verbs of the command line that need more than a few lines; `lab/__main__.py` brings them together."""
