"""One page about a table and its tree: what is in it, how well it does, and why."""

from branchwise.report.making import make_report
from branchwise.report.result import Report

__all__ = ["Report", "make_report"]
