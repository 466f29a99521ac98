"""What an application feeds its models, saved as data sets: this runs in the application's own Python.

In two lines: ``import harness.record``, then ``harness.record.start()`` before sessions are made.
"""

from harness.record.recorder import start

__all__ = ["start"]
