"""Schedules: what can be done with them, at every door."""
