"""`python -m harness`: the command, where it is not on the path."""

import sys

from harness.cli import main

sys.exit(main())
