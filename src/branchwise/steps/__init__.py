"""Worked solutions: the calculations behind the splits of a tree, step by step."""
