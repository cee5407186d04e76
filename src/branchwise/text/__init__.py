"""Words: conditions, numbers and documents for people."""
