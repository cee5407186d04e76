"""Ensembles: trees that predict together, and their out-of-bag rows."""
