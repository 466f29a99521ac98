import sys

from benchmarks.odd_models.command import main

sys.exit(main())
