"""Reading, output and models for subcommands."""
