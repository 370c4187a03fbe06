"""BroadcastView: which axes of an operand are stretched, and which sums bring its gradient back."""
