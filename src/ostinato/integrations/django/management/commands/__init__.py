"""One file for each command, by its name."""
