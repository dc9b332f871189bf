"""HTTP calls: which addresses may be called, and one request with its redirects. `executor.py` is the way in."""
