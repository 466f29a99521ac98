"""The book of operators: one row for each ONNX operator, with all that the harness knows about it.

``row.py`` declares what a row may say, each fact with its meaning and its source. ``families`` has the rows.
``book.py`` finds them, and makes tables of one fact.
"""
