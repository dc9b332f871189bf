"""Use cases, one for each verb. Every door calls these and nothing below them."""
