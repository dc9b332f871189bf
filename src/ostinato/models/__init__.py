"""The domain: frozen values and enums, no I/O. Neighbours: timing below, stores above."""
