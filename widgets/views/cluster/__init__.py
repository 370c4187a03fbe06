"""ClusterView: the workers of a cluster."""
