"""Conformance: run a profile, submit the result, verify a submission.

``harness.annex.conformance.submission`` has the public form of a submission.
"""
