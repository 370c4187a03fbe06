"""GraphView: the tape as it grows, and gradients on their way back."""
