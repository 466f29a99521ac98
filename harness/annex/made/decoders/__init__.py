"""The suite ``generate``: seeded decoders of language models, in the forms in which they are shipped.

A module for each part of a decoder, one for each dialect of operators, and ``roster``, the table of models.
"""
