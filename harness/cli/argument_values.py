"""Values of arguments, read from text: counts, ages, durations."""

import argparse
import math

_WEEK_S = 604_800


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def days(text: str) -> float:
    """Read a number of days, 0 or more."""
    try:
        read = float(text)
    except ValueError:
        read = math.nan
    if not read >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days; expected 0 or more")
    return read


def duration_s(text: str) -> float:
    """Read a duration such as ``90s``, ``10m`` or ``1.5h``, in seconds."""
    number, unit = text[:-1], text[-1:]
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    try:
        seconds = float(number) * units[unit]
    except (KeyError, ValueError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; expected such as 90s, 10m or 1.5h")
    return seconds


def limit_s(text: str) -> float:
    """Read a limit in seconds, above 0 and at most a week, which every system can wait for."""
    try:
        read = float(text)
    except ValueError:
        read = math.nan
    if not 0 < read <= _WEEK_S:
        raise argparse.ArgumentTypeError(f"{text!r} is no limit; expected seconds, up to {_WEEK_S}")
    return read


def share(text: str) -> float:
    """Read a share such as ``5%``, above 0 and at most 1."""
    try:
        read = float(text.removesuffix("%")) / 100
    except ValueError:
        read = math.nan
    if not (text.endswith("%") and 0 < read <= 1):
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; expected such as 5%, up to 100%")
    return read


def seed(text: str) -> int:
    """Read a whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)
