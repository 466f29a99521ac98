"""The benchmarks are no installed package: tests find them in the checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
