"""Wrong answers planted on small models, and honest ones: what the product's own default says of each.

``python -m benchmarks.planted`` runs it; docs/reference/planted.md shows what came of it.
"""
