"""The engine of a node: ticker → plan → dispatcher → (execution) → recorder, and what keeps them honest.

Follow one fire: ticker.py, plan.py, dispatcher.py, ../execution/runner.py, recorder.py; node.py puts them together.
"""
