"""A result beside its golden, element by element, and the policy by which it is judged."""
