"""The inputs of an application's models, saved as data sets: this runs in the application's own Python.

Two lines start it: ``import harness.record``, then ``harness.record.start()`` before sessions are created.
"""

from harness.record.recorder import start

__all__ = ["start"]
