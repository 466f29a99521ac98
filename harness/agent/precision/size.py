"""How large a model may be that is converted."""

from __future__ import annotations

LARGEST = 1 << 30  # bytes with its weights: converters hold several copies, and messages end at 2 GiB
TOO_LARGE = "it takes more than the %d MiB that are converted" % (LARGEST >> 20)
