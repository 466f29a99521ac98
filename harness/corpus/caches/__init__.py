"""The cache folder: entries that are filled once, rows of facts, and what shows that they are undamaged."""
