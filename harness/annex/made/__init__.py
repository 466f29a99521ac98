"""Suites whose models code makes: the zoo, decoders of language models, and fuzz suites."""
