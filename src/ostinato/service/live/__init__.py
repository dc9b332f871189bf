"""The live stream: `changes` finds what happened between two looks at the ledger, `hub` publishes it to its listeners
(`listener`), and `output` and `lines` follow what a run prints. Its socket is api/live.py."""
