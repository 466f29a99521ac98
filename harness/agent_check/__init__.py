"""Floor 3: checks of any agent against ``docs/reference/agent-protocol.md``.

`check.py` has what a check is, `dialogue.py` one conversation, `bench.py` what checks share. `run.py` lists
the modules with the checks.
"""
