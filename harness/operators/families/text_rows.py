"""Strings."""

from harness.operators.row import plain

# fmt: off
ROWS = (
    *plain("RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer"),
)
# fmt: on
