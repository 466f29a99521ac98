"""Models that nobody would write, made from seeds: in a run none of them may cost more than itself."""
