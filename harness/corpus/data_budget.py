"""How much the test data of one model may take; told before anything is unpacked."""

from harness.core.reading import size_text

MOST_BYTES = 512 << 20
"""Bytes of memory for all data sets of a model; for each file of them, too."""

TEXT_BYTES = 80
"""Bytes that a text takes besides its letters, as Python holds it."""

PART_BYTES = 600
"""Bytes that a tensor takes besides its elements: as a message, an array and a value."""


class DataBudget:
    """What is left for the data of one model."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = self._left = most

    def take(self, nbytes: int) -> None:
        """Take some bytes.

        Raises:
            ValueError: There are fewer left.
        """
        self._left -= nbytes
        if self._left < 0:
            raise ValueError(f"the test data of the model would take more than {size_text(self._most)}")
