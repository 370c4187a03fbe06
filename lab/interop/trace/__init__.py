"""What a recording tells, as slices, arrows, moments and counters of the Trace Event Format."""
