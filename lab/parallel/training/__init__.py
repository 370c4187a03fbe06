"""Training on ranks: how they are led, and data parallelism."""
