"""How events of ranks come home: relayed, aligned to one clock, merged into one order."""
