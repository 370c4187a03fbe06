"""RingView: one collective, hop by hop."""
