"""What is wrong with one model or its data: costs that model's cells, nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness.core.errors import HarnessError, one_line


class ModelError(HarnessError):
    """A model or its test data cannot be used.

    Attributes:
        path: The file at fault.
        cause: What is wrong with it, in one line.
    """

    def __init__(self, path: Path, cause: str) -> None:
        super().__init__(path, cause)
        self.path = path
        self.cause = one_line(cause)

    def __str__(self) -> str:
        # The folder and the file say which one it is; a whole path would push the cause out of sight.
        return f"{one_line('/'.join(self.path.parts[-2:]), 120)}: {self.cause}"


class SettingsError(ModelError):
    """What was said about a model does not fit it: a mistake of whoever wrote it, not of the model."""


@contextmanager
def blame(path: Path) -> Iterator[None]:
    """Turn whatever hostile or broken bytes cause into a ``ModelError`` that names the file."""
    try:
        yield
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(path, error.strerror or str(error)) from error
    except MemoryError as error:
        raise ModelError(path, "does not fit into memory") from error
    except (ValueError, OverflowError, msgspec.DecodeError) as error:
        raise ModelError(path, str(error)) from error
    except Exception as error:
        # What libraries raise for broken bytes is about the model. Anything else is a fault of the harness.
        if type(error).__module__.partition(".")[0] not in _LIBRARIES:
            raise
        raise ModelError(path, f"cannot be read: {type(error).__name__}: {error}") from error


_LIBRARIES = frozenset({"google", "onnx"})
