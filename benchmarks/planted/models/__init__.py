"""The models: small, built by code, seeded."""

from benchmarks.planted.models.choices import choices
from benchmarks.planted.models.later import later
from benchmarks.planted.models.model import Model
from benchmarks.planted.models.networks import networks
from benchmarks.planted.models.values import values
from benchmarks.planted.models.windows import windows


def models() -> list[Model]:
    """Return every model."""
    return [*values(), *choices(), *networks(), *windows(), *later()]
