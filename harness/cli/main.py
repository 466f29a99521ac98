"""Entry point: arguments in, exit code out; every usage error in one or two lines."""

import contextlib
import os
import sys
from collections.abc import Sequence

from harness.cli.lasting_output import lasting_output
from harness.cli.parser import full_parser, run_words
from harness.core.text.errors import (
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    HarnessError,
    UncontainedError,
)
from harness.core.text.visible_text import visible


@lasting_output()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments without the program's name; those of the process by default.

    Returns:
        0 as expected, 1 unexpected verdicts, 2 usage, 3 a required target was unavailable, the run is
        incomplete or proves nothing, or an exception of our own ended the command, 130 interrupted.
    """
    words = sys.argv[1:] if argv is None else argv
    try:
        if not words:
            full_parser().print_help(sys.stderr)
            return EXIT_USAGE
        return run_words(words)
    except HarnessError as error:
        # The text may quote names from models and runs.
        print(visible(f"ep-harness: {error}"), file=sys.stderr)  # noqa: T201 - what a command is for
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (Exception, UncontainedError) as error:  # noqa: BLE001 - whatever it is, it is no verdict
        with contextlib.suppress(Exception):  # such as memory that is still full
            _tell(error)
        return EXIT_INCOMPLETE


def _tell(error: BaseException) -> None:
    """Print an exception of our own in two lines; its traceback goes to a file."""
    import tempfile  # with archives, random numbers and more, which a command without an error does not need

    from harness.core.verdicts.own_error import own_error

    found = own_error(error)
    where = ""
    with contextlib.suppress(OSError):  # a full disk, which may be what has failed
        descriptor, path = tempfile.mkstemp(prefix="ep-harness-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(found.traceback)
        where = f"\n    with {path}, its traceback"
    print(visible(f"ep-harness: {found.reason}{where}"), file=sys.stderr)  # noqa: T201 - as above
