"""Views of a tree. They see only the schema and the tree."""
