"""Floor 1: facts about execution providers, read from ``matrices/providers/*.toml``.

Facts only; whether a provider works on this machine is for the agent to find out.
"""
