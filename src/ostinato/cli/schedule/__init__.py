"""`ostinato schedule`: its verbs, and how a schedule is shown."""
