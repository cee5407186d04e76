"""Tables of Dask: partitions are counted on the workers of a cluster."""

from branchwise.engines.dask.source import DaskTable

__all__ = ["DaskTable"]
