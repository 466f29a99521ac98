"""``python -m benchmarks.profiles``."""

import sys

from benchmarks.profiles.command import main

if __name__ == "__main__":
    sys.exit(main())
