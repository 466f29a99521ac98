"""Floor 3: from a failing cell to a fault that others can reproduce.

`triage` confirms, locates, reduces, explains and bundles one failure; `reduce` reduces any model.
"""
