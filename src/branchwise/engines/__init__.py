"""Engines: where rows are kept, and how they are counted."""
