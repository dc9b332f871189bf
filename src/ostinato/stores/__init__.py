"""Where rows live. `base` is the contract; `sqlite` and `postgres` keep it; `rows` turns rows into models."""
