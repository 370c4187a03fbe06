"""How `lab.script` reads: the source, numbers that give way, branches and loops, expressions, statements."""
