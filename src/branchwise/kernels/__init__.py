"""Kernels: the compiled twin of growth, and which of the two serves.

The reference (``grow.py`` with ``engines/memory.py``) is the meaning and serves
everything; the compiled twin serves the built-in criteria, gives the same tree to
the last bit, and is much faster. ``BRANCHWISE_KERNEL=reference`` or ``native``
forces either.
"""
