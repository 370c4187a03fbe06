"""DifferenceView: two runs beside each other, around the first event in which they differ."""
