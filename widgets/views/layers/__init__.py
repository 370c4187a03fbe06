"""LayersView: what each layer gives and what comes back to it, during a training."""
