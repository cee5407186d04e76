"""Explanations of predictions, what-if searches, and comparisons of models."""
