"""How much the test data of one model may take; checked before anything is unpacked."""

from harness.core.files.reading import size_text

MOST_DATA_BYTES = 512 << 20
"""Bytes of memory for all data sets of a model, and for each of their files."""

TEXT_BYTES = 80
"""Bytes of a text besides its letters, in Python's memory."""

PART_BYTES = 600
"""Bytes of a tensor besides its elements: as a message, an array and a value."""


class DataBudget:
    """The remaining budget for the data of one model."""

    def __init__(self, most: int = MOST_DATA_BYTES) -> None:
        self._most = self._left = most

    def take(self, nbytes: int) -> None:
        """Take some bytes.

        Raises:
            ValueError: Fewer bytes are left.
        """
        self._left -= nbytes
        if self._left < 0:
            raise ValueError(f"the test data of the model would take more than {size_text(self._most)}")
