"""RetraceView: the calls of jitted functions, which graph served each, and why it was traced."""
