"""The neighbours: what the lab recorded, in the forms that other tools read. One file a neighbour."""
