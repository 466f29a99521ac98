"""``python -m benchmarks.detection``."""

import sys

from benchmarks.detection.command import main

if __name__ == "__main__":
    sys.exit(main())
