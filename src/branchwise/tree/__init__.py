"""The tree: its arrays, how rows pass through it, and edits. No training rows."""
