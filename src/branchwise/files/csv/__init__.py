"""Delimited text: rows, columns, and codes of values."""
