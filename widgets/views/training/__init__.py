"""Charts of a training: its loss and its gradients."""
