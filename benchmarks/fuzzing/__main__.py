"""``python -m benchmarks.fuzzing``."""

import sys

from benchmarks.fuzzing.command import main

if __name__ == "__main__":
    sys.exit(main())
