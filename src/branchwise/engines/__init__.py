"""Engines: who adds up the counts. Each keeps the rows; none sees a criterion."""
