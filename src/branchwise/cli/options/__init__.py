"""Options that several subcommands share."""
