"""On paper: plans of collectives and schedules of pipelines as values, checked and timed without a single process."""
