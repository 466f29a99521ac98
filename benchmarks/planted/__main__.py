"""``python -m benchmarks.planted``."""

import sys

from benchmarks.planted.command import main

if __name__ == "__main__":
    sys.exit(main())
