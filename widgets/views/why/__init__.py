"""WhyView: one entry of a gradient, and the paths that contribute most to it."""
