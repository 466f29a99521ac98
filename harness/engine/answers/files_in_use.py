"""Files that a run has read: whether the results still belong to these files."""

import os
from collections.abc import Callable

import msgspec

from harness.core.lru_cache import LruCache
from harness.corpus.case import Case, model_files_state
from harness.corpus.model.model_errors import ChangedFileError, MendedError, ModelError

_MOST = 1 << 17
"""Largest number of remembered models: more than a run usually has. Fuzzing has no end."""

_Model = tuple[str, str]
"""Suite and model."""


class _Known(msgspec.Struct, frozen=True):
    """A model as it was read, without its data, and when its files were written."""

    case: Case
    written: tuple[tuple[int, int], ...]


class FilesInUse:
    """Remembers the files of each model, and checks them again before its results count.

    A model whose files have changed is not used any more: ``load`` raises, and so does every later request.
    ``load`` reads a model from its files; if its suite ``is_cached``, it also makes them again.
    """

    def __init__(self, load: Callable[[str, str], Case], is_cached: Callable[[str], bool]) -> None:
        self._load = load
        self._is_cached = is_cached
        self._known: LruCache[_Model, _Known] = LruCache(_MOST)
        self._changed: dict[_Model, ChangedFileError] = {}

    def load(self, suite: str, model: str) -> Case:
        """Return a model from its files.

        Raises:
            ChangedError: They differ from those of the first time.
            ModelError: They cannot be used, and could not be the first time.
        """
        if (before := self.changed(suite, model)) is not None:
            raise before
        known = self._known.get((suite, model))
        try:
            case = self._load(suite, model)
        except ChangedFileError as error:
            raise self._note(suite, model, error) from error
        except ModelError as error:
            # It existed when the run was planned.
            if known is None and os.path.lexists(error.path):
                raise
            raise self._note(suite, model, ChangedFileError(error.path)) from error
        if known is None:
            self._remember(suite, model, case)
        elif known.case.digest != case.digest:
            raise self._note(suite, model, ChangedFileError(case.model_path))
        return case

    def changed(self, suite: str, model: str) -> ChangedFileError | None:
        """Return the error of a model whose files are known to have changed."""
        return self._changed.get((suite, model)) if self._changed else None

    def look(self, suite: str, model: str, *, fails: bool) -> ChangedFileError | None:
        """Check the files of a model again; return an error if they changed since they were read.

        Files that were rewritten with the same content do not explain a right answer, but may explain one
        that ``fails``: the model may have been read in between. A model of the cache is made again; the error
        then only means that its results have to be repeated.

        A file that only has other rights or one more link was not rewritten: a model with noise links to the
        external data of its model.
        """
        known = self._known.get((suite, model))
        if known is None or (error := self.changed(suite, model)) is not None:
            return None if known is None else error
        case = known.case
        if model_files_state(case) == case.state:
            return None
        now = self._loaded(suite, model)
        if now is None or now.digest != case.digest:
            return self._note(suite, model, ChangedFileError(case.model_path))
        rewritten = known.written != _written(now)
        if rewritten and fails and not self._is_cached(suite):
            return self._note(suite, model, ChangedFileError(case.model_path))
        if rewritten and not fails:
            return None
        self._remember(suite, model, now)
        return MendedError(case.model_path) if rewritten else None

    def _remember(self, suite: str, model: str, case: Case) -> None:
        known = _Known(msgspec.structs.replace(case, data_sets=()), _written(case))
        self._known.put((suite, model), known, 0)

    def _loaded(self, suite: str, model: str) -> Case | None:
        try:
            return self._load(suite, model)
        except ModelError:
            return None

    def _note(self, suite: str, model: str, error: ChangedFileError) -> ChangedFileError:
        self._changed[suite, model] = error
        return error


def _written(case: Case) -> tuple[tuple[int, int], ...]:
    """Return size and time of the last writing of each file of a model; nothing if one is missing."""
    try:
        states = [os.stat(path) for path in (case.source or case.model_path, *case.external)]  # noqa: PTH116
    except OSError:
        return ()
    return tuple((state.st_size, state.st_mtime_ns) for state in states)
