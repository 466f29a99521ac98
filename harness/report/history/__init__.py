"""Many runs in their order: what was stored of each, trends, and nights side by side."""
