"""DataFrames of Spark: partitions are counted on its executors."""

from branchwise.engines.spark.source import SparkTable

__all__ = ["SparkTable"]
