"""Stage 8: making trees smaller, after or instead of stopping early."""
