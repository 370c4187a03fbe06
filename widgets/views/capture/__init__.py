"""CaptureView: a function as it is, traced and read from its source, line by line and input by input."""
