"""What a rank's program holds in its hands: a Comm, the executor of plans, messages from and to who launched it."""
