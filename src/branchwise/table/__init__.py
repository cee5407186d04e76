"""Stage 1: a table as the user has it -> a schema and encoded columns.

The only part of branchwise that touches dataframes.
"""
