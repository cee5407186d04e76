"""Rules of a tree: rule sets and rule lists."""
