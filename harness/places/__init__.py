"""Floor 1: the places of targets: which there are, whether they are equal, and which of them can be used."""
