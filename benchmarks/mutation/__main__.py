import sys

from benchmarks.mutation.command import main

if __name__ == "__main__":
    sys.exit(main())
