"""Pruning of grown trees."""
