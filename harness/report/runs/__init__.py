"""Run folders and files of other tools, read back and merged."""
