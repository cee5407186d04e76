"""How people write numbers, dates and words, and how these are read."""
