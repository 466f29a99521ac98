"""``python -m benchmarks.reference_trust``."""

import sys

from benchmarks.reference_trust.command import main

if __name__ == "__main__":
    sys.exit(main())
