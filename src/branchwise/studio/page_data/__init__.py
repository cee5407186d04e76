"""What the page shows, in plain values: tables, trees, nodes, recipes, lessons."""
