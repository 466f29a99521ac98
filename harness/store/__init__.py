"""Results of many runs in one database that SQL reads: a cache of run folders, which stay the truth.

It reads runs that are new or changed, forgets runs that are gone, and can be removed at any time.
"""
