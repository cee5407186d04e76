"""Views of a tree as text, pictures and pages, from schema, tree and recipe only."""
