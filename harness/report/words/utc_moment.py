"""Times of a run in the form of other programs."""

import datetime as dt


def epoch_ms(moment: str) -> int:
    """Return the milliseconds since 1970 of a time in ISO 8601; 0 for an unknown one."""
    try:
        return round(1000 * dt.datetime.fromisoformat(moment).timestamp())
    except (ValueError, OverflowError):
        return 0
