"""The rows of the book, by families of operators."""
