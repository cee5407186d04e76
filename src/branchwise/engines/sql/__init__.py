"""Tables of databases: rows are counted by SQL statements."""

from branchwise.engines.sql.source import SqlTable

__all__ = ["SqlTable"]
