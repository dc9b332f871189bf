"""Agents: how a command line that speaks with a model is called, heard out and judged. `executor.py` is the way in."""
