"""``python -m benchmarks.profiles freeze [PROFILE...]``."""

import sys

from benchmarks.profiles.freeze import main

if __name__ == "__main__":
    command, *arguments = sys.argv[1:] or [""]
    if command != "freeze":
        sys.exit("usage: python -m benchmarks.profiles freeze [PROFILE...]")
    sys.exit(main(arguments))
