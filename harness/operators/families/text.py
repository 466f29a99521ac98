"""Strings."""

from harness.operators.row import plain

ROWS = (*plain("RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer"),)
