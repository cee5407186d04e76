"""The worked solution: how the split of a node was found, as one writes it by hand."""
