"""What is measured: each file runs alone, in the environment of its library, and answers in lines of JSON.

They import only `link.py`, the standard library and the library that they measure, because a peer's environment
has nothing else. bench/processes.py starts them.
"""
