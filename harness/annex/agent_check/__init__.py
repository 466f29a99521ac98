"""Floor 3: checks of any agent against ``docs/reference/agent-protocol.md``.

`check.py` defines a check, `dialogue.py` one conversation, `bench.py` the common parts of checks. `run.py`
lists the modules with the checks.
"""
