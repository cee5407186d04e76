"""Files and databases, read into Arrow, whole or in chunks, and written."""
