"""Ranks on Dask workers: leases, launches, and how they end."""
