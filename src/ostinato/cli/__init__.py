"""The command line: a door to the services, one file for each noun. `main.py` knows the commands and the exit codes."""
