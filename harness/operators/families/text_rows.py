"""Strings."""

from harness.operators.row import plain

# fmt: off
_ROWS = (
    *plain("RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer"),
)
# fmt: on
