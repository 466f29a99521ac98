"""Profiles: frozen, numbered sets of cases, with inputs, goldens and noise, for conformance.

``harness.annex.conformance.profiles.profile`` has the public form of a profile's file.
"""
