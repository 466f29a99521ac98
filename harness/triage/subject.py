"""A subject: one model with one set of inputs, as trials take it."""

import hashlib
from functools import cached_property
from pathlib import Path

import msgspec

from harness.core.value import Value, leaves, pack

NamedValues = tuple[tuple[str, Value], ...]


class Subject(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One model with one set of inputs. ``dict`` keeps the digest once it is known.

    Attributes:
        model: The serialized ``ModelProto``.
        inputs: Values by the name of the graph input.
        external: Folder of its external data; None if there is none.
    """

    model: bytes
    inputs: NamedValues
    external: Path | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hexadecimal) over the model and its inputs; equal subjects give equal results."""
        digest = hashlib.sha256(self.model)
        for name, value in self.inputs:
            for leaf, part in leaves(name, value):
                digest.update(leaf.encode(errors="surrogateescape"))
                if part is not None:
                    digest.update(f"{part.dtype}{part.array.shape}".encode())
                    digest.update(pack(part))
        return digest.hexdigest()
