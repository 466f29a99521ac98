"""From facts and a policy to a verdict: the only place where verdicts are made."""
