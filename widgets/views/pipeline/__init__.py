"""PipelineView: micro-batches on their way through stages."""
