"""The shapes of REST, one file for each noun: what OpenAPI says of answers, and what request bodies are checked by."""
