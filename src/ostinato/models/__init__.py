"""What the house talks about: frozen values and enums, no I/O. Neighbours: timing below, stores above."""
