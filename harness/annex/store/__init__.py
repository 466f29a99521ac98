"""Results of many runs in one database that SQL can read: a cache of run folders, which remain the original.

It reads new or changed runs, forgets deleted ones, and can be removed at any time.
"""
