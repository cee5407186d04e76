"""Export to SQL: queries, dialects and the databases that verify them."""
