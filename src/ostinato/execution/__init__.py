"""One run, executed: runner picks an executor, the outcome is decided purely, the recorder gets the finish."""
