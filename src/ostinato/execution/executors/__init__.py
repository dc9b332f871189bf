"""How each kind of work is executed. An executor gets an active run, calls `done` once with an Outcome, and can be
asked to stop; it knows neither store nor policy."""
