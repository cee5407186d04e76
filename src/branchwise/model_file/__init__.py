"""The model file: canonical JSON, written and validated."""
