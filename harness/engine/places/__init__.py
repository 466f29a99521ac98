"""The places of targets: which machines there are, whether they are equal, and which of them can be used."""
