"""A digest of the code that builds models, so that nothing it has built outlives an edit of it."""

import functools
import hashlib
from pathlib import Path


@functools.cache
def code_digest(room: str) -> str:
    """Changes with the source of any module of a package beside this one.

    Args:
        room: The package's name, such as ``zoo``.
    """
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted((Path(__file__).parent / room).glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()
