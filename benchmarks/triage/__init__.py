"""What triage finds of planted faults, and what that takes: ``python -m benchmarks.triage --help``.

The figures are told in docs/reference/benchmarks.md.
"""
