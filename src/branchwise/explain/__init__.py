"""Why this answer, what would change it, and what sets two models apart."""
