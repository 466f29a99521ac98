"""Faults of one model or its data, which cost the cells of that model only."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness.core.text.errors import HarnessError, one_line


class ModelError(HarnessError):
    """A model or its test data cannot be used; the text names the file and the problem, in one line."""

    def __init__(self, path: Path, cause: str) -> None:
        super().__init__(path, cause)
        self.path = path
        self.cause = one_line(cause)

    def __str__(self) -> str:
        # Folder and file identify it; a whole path would leave no room for the cause.
        return f"{one_line('/'.join(self.path.parts[-2:]), 120)}: {self.cause}"


class InputError(ModelError):
    """The model has no usable input: its test data are broken, or no input can be generated.

    The model itself may be good.
    """


class BoundError(ModelError):
    """A model may be good, but reading it would exceed a bound of the harness; see ``OverBoundError``."""


class OverBoundError(ValueError):
    """Something exceeds a documented bound; ``blame`` turns it into a ``BoundError``."""


class NoInputError(ValueError):
    """An input of this kind cannot be fed; ``blame`` turns it into an ``InputError``."""


class RefusedModelError(ModelError):
    """The CPU provider refuses a model that onnx's checker accepts, so there is nothing to compare with."""


class ChangedFileError(ModelError):
    """A file of a model, or of its data, changed or vanished during use, so that its content is unknown."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "the file changed during the run; restore it, then continue with --resume")


class DamagedError(ChangedFileError):
    """A file of a model in the cache is damaged; ``Suite.mend`` makes it again."""

    def __init__(self, path: Path, why: str = "") -> None:
        further = f", and cannot be made again: {why}" if why else ""
        ModelError.__init__(self, path, f"the file in the cache is damaged{further}")


class MendedError(ChangedFileError):
    """A file in the cache was damaged or missing, and has been restored: its user has to repeat the work."""


class MisnamedError(ModelError):
    """The name of a model's file is not UTF-8, so that messages and records cannot contain it."""

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
        """The error in the form of a run's warning, in one line or two.

        Records hold its text, which is one line.
        """
        told, hint = self._lines
        return f"{told}\n    {hint}" if hint else str(told)


@contextmanager
def blame(path: Path, kind: type[ModelError] = ModelError) -> Iterator[None]:
    """Turn errors caused by broken files into a ``ModelError`` of a given kind that names the file."""
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
        # Errors of libraries are about the model's bytes. Any other error is a fault of the harness.
        if type(error).__module__.partition(".")[0] not in _LIBRARIES:
            raise
        raise kind(path, f"cannot be read: {type(error).__name__}: {error}") from error


_LIBRARIES = frozenset({"google", "onnx"})
