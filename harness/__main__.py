"""The command, as `ep-harness` and as `python -m harness`: an interruption of the imports is no traceback."""

import sys

_INTERRUPTED = 130
"""``harness.core.text.errors.EXIT_INTERRUPTED``, which is not imported yet."""


def main() -> int:
    """Run the command of this process, and return its exit code.

    What asks a process to end, such as a job's time limit or a terminal that is closed, interrupts it as
    Ctrl-C does. A signal that is ignored, as under `nohup`, stays so.
    """
    try:
        import signal  # even this takes 5 ms

        for name in ("SIGTERM", "SIGHUP", "SIGBREAK"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, signal.default_int_handler)
        from harness.cli.main import main as command

        return command()
    except KeyboardInterrupt:
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
