"""One page about a table and its tree: what is in it, how well it does, and why."""

from branchwise.report.build import Report, make_report

__all__ = ["Report", "make_report"]
