"""One pass of the compiler: the graph before it and after it, side by side."""
