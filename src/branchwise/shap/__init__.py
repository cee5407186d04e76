"""Exact Shapley values of predictions."""
