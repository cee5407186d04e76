"""Texts for people: conditions, numbers, paths, reasons and documents."""
