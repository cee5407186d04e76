"""Growing: counts, scores, splits, tree."""
