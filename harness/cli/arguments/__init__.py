"""The arguments of all commands: one module for each group of commands, `parser` puts them together.

They import nothing heavy, so that `--help` is fast.
"""
