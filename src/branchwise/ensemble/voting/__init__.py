"""Rules that vote: pooled from trees, chosen, weighted, and kept as an ensemble."""
