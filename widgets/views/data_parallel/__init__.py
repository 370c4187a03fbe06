"""DataParallelView: the replicas of a data-parallel training."""
