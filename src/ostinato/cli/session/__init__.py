"""`ostinato session`: its verbs, and how a session is shown."""
