"""The selection of cases for conformance profiles, and the command that freezes them."""
