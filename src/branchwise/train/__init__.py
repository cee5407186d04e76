"""Training: grow and prune a model, hold out rows, prune a finished model."""
