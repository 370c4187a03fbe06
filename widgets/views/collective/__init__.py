"""Views of collectives, hop by hop: as ring, tree or matrix, and two beside each other."""
