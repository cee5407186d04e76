"""HTML reports on a table and its tree: data, rules, importances, scores."""

from branchwise.report.build import Report, make_report

__all__ = ["Report", "make_report"]
