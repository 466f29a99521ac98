"""``python -m benchmarks.triage``."""

import sys

from benchmarks.triage.command import main

if __name__ == "__main__":
    sys.exit(main())
