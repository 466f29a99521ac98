"""Floor 3: a finished run, judged again under other tolerances. Starts no process."""
