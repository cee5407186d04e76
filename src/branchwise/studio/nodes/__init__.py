"""Nodes of a session: their paths, rows, candidates and prescribed splits."""
