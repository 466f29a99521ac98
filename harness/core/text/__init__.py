"""Texts: errors of use, patterns, versions, and words made harmless."""
