"""Faults of one model or its data, which cost the cells of that model only."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness.core.errors import HarnessError, one_line


class ModelError(HarnessError):
    """A model or its test data cannot be used: the file at fault, and what is wrong with it, in one line."""

    def __init__(self, path: Path, cause: str) -> None:
        super().__init__(path, cause)
        self.path = path
        self.cause = one_line(cause)

    def __str__(self) -> str:
        # Folder and file identify it; a whole path would push the cause out of sight.
        return f"{one_line('/'.join(self.path.parts[-2:]), 120)}: {self.cause}"


class InputError(ModelError):
    """There is nothing to feed the model with: its test data are broken, or no input can be made.

    The model itself may be good.
    """


class BoundError(ModelError):
    """A model may be good, but to read it would take more than the harness allows; see ``OverBoundError``."""


class OverBoundError(ValueError):
    """Something takes more than a documented bound; ``blame`` makes a ``BoundError`` of it."""


class NoInputError(ValueError):
    """A kind of input that cannot be fed; ``blame`` makes an ``InputError`` of it."""


class RefusedError(ModelError):
    """The CPU provider refuses a model that onnx's checker accepts, so there is nothing to compare with."""


class ChangedError(ModelError):
    """A file of a model, or of its data, changed or vanished while it was used: nothing is known of it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the file changed during the run; restore it, then continue with --resume")


class DamagedError(ChangedError):
    """A file of a model in the cache is not as it was made; ``Suite.mend`` makes it again."""

    def __init__(self, path: Path, why: str = "") -> None:
        further = f", and cannot be made again: {why}" if why else ""
        ModelError.__init__(self, path, f"the file in the cache is damaged{further}")


class MendedError(ChangedError):
    """A file in the cache was damaged or gone, and is whole again: what used it is to be repeated."""


class MisnamedError(ModelError):
    """The name of a model's file is not UTF-8, so that no message and no record can hold it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the name of the file is not UTF-8: rename it, then it is run")


class SettingsError(InputError):
    """Settings do not fit their model; the settings are at fault, not the model.

    A ``hint`` says what is valid, or what to do.
    """

    def __init__(self, path: Path, cause: str, hint: str = "") -> None:
        super().__init__(path, f"{cause}; {hint}" if hint else cause)
        self._lines = (ModelError(path, cause), one_line(hint))

    @property
    def shown(self) -> str:
        """The error as a run warns of it, in one line or two; records hold its text, which is one line."""
        told, hint = self._lines
        return f"{told}\n    {hint}" if hint else str(told)


@contextmanager
def blame(path: Path, kind: type[ModelError] = ModelError) -> Iterator[None]:
    """Turn the errors that broken files cause into a ``ModelError`` that names the file, of a kind."""
    try:
        yield
    except ModelError:
        raise
    except NoInputError as error:
        raise InputError(path, str(error)) from error
    except OverBoundError as error:
        raise (BoundError if kind is ModelError else kind)(path, str(error)) from error
    except OSError as error:
        raise kind(path, error.strerror or str(error)) from error
    except MemoryError as error:
        raise kind(path, "does not fit into memory") from error
    except (ValueError, OverflowError, msgspec.DecodeError) as error:
        raise kind(path, str(error)) from error
    except Exception as error:
        # Errors of libraries are about the model's bytes. Any other is a fault of the harness.
        if type(error).__module__.partition(".")[0] not in _LIBRARIES:
            raise
        raise kind(path, f"cannot be read: {type(error).__name__}: {error}") from error


_LIBRARIES = frozenset({"google", "onnx"})
