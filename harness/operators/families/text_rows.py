"""Strings."""

from harness.operators.row import BookRow, plain

# fmt: off
ROWS = (
    BookRow("StringNormalizer", columns="keeps"),
    BookRow("StringSplit", columns="tokens"),
    BookRow("TfIdfVectorizer", columns="words"),
    *plain("RegexFullMatch StringConcat"),
)
# fmt: on
