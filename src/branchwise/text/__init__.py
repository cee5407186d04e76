"""Texts for people: conditions, numbers, paths, reasons and documents."""

#: How many values of a list are shown before the rest is only counted.
SHOWN_VALUES = 8
#: The same, on a branch of a picture.
PICTURED_VALUES = 4
