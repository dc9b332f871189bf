"""Doors to other programs."""
