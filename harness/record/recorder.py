"""Wrap the sessions of an application, and save their inputs as data sets beside its models.

It runs in the application's own Python, 3.9 or newer, with any onnxruntime from 1.16 on, and imports nothing
else of the harness. It must never disturb the application: errors are reported at its end, in a line.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from harness.record.data_set import (
    UnsavedError,
    array,
    call_digest,
    models_in,
    remove_data_set,
    write_data_set,
    write_recorded_model,
)
from harness.record.hook import Finder, replace
from harness.record.saved_summary import events_summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

RECORD_VARIABLE = "EP_HARNESS_RECORD"
"""The environment variable that passes the settings to every process of the application, as JSON."""

CALLS = 3
MOST_MIB = 256

_LOOKS = 20
"""Multiple of ``calls``: so many calls are examined; one with the same inputs is not saved again."""

_NOT_VALID = frozenset({"InvalidArgument", "TypeError", "ValueError"})
"""Errors of a run that report inputs which do not fit the model; any other may be the provider's fault."""


class RecorderSettings(NamedTuple):
    """The settings: what is saved, and where.

    Attributes:
        calls: Number of different calls that are saved for each model.
        out: Folder for the data sets; empty: beside each model.
        journal: Folder for the processes' reports; empty for a single process.
        most_bytes: Largest size of one model's data.
    """

    calls: int = CALLS
    out: str = ""
    journal: str = ""
    most_bytes: int = MOST_MIB << 20


class _Model:
    """A model of the application: its path, or the digest of its bytes."""

    def __init__(self, path: str, key: str) -> None:
        self.path = path
        self.key = key
        self.looked = 0
        self.nbytes = 0
        self.full = False

    @property
    def label(self) -> str:
        return self.path or f"a model made from bytes (SHA-256 {self.key[:12]})"


def start(calls: int = CALLS, out: str | os.PathLike[str] = "", most_mib: int = MOST_MIB) -> None:
    """Save the inputs of this process's models from now on; existing sessions are not recorded.

    Args:
        calls: Number of different calls that are saved for each model.
        out: Folder for the data sets; by default they are saved beside each model.
        most_mib: Largest size of one model's data, in MiB.
    """
    if RECORD_VARIABLE in os.environ:  # `ep-harness record` already does it
        return
    path = os.path.abspath(out) if os.fspath(out) else ""
    recorder = _Recorder(RecorderSettings(calls, path, "", most_mib << 20))
    atexit.register(recorder.tell)
    recorder.begin()


def start_by_environment() -> None:
    """Save the inputs of this process's models, with the settings of `ep-harness record`."""
    _Recorder(RecorderSettings(**json.loads(os.environ[RECORD_VARIABLE]))).begin()


class _Recorder:
    """The known models of one process."""

    def __init__(self, settings: RecorderSettings) -> None:
        self._settings = settings
        self._models: dict[str, _Model] = {}
        self._sessions: weakref.WeakKeyDictionary[Any, _Model] = weakref.WeakKeyDictionary()
        self._bound: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
        self._taken: set[str] = set()
        self._events: list[dict[str, str]] = []
        self._renew_lock()
        if hasattr(os, "register_at_fork"):  # another thread may hold it while this one forks
            os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        self._lock = threading.RLock()

    def begin(self) -> None:
        """Wrap onnxruntime, now or as soon as it is imported."""
        if "onnxruntime" in sys.modules:
            self.wrap(sys.modules["onnxruntime"])
        else:
            sys.meta_path.insert(0, Finder(self.wrap))

    def tell(self) -> None:
        with contextlib.suppress(Exception):
            sys.stderr.write(f"harness.record: {events_summary(self._events)}\n")

    def wrap(self, onnxruntime: ModuleType) -> None:
        """Wrap the methods of sessions and bindings that take inputs."""
        session, binding = onnxruntime.InferenceSession, onnxruntime.IOBinding
        replace(session, "__init__", self._created)
        for name, feeds_of in (
            ("run", _second),
            ("run_async", _second),
            ("run_with_ort_values", _second),
            ("run_with_iobinding", self._feeds_of_binding),
            ("run_with_ortvaluevector", _no_feeds),
        ):
            replace(session, name, functools.partial(self._ran, feeds_of))
        for name, value_of in (
            ("bind_cpu_input", _second),
            ("bind_ortvalue_input", _second),
            ("bind_input", _at_address),
        ):
            replace(binding, name, functools.partial(self._is_bound, value_of))
        replace(binding, "clear_binding_inputs", self._cleared)
        self._note("loaded")

    def _created(self, original: Callable[..., Any], session: Any, args: Any, kwargs: Any) -> Any:
        result = original(session, *args, **kwargs)
        with self._quietly("a session"):
            model = args[0] if args else kwargs.get("path_or_bytes")
            self._sessions[session] = self._model_of(model)
        return result

    def _model_of(self, model: Any) -> _Model:
        from hashlib import sha256

        if isinstance(model, bytes):
            path, key = "", sha256(model).hexdigest()
        else:
            path = os.path.abspath(os.fsdecode(os.fspath(model)))
            key = sha256(os.fsencode(path)).hexdigest()
        with self._lock:
            known = self._models.setdefault(key, _Model(path, key))
        if not path and self._settings.out and len(model) <= self._settings.most_bytes:
            write_recorded_model(self._home(known), model)
        return known

    def _ran(
        self, feeds_of: Callable[..., Any], original: Callable[..., Any], session: Any, args: Any, kwargs: Any
    ) -> Any:
        saved = self._save(session, functools.partial(feeds_of, args, kwargs))
        try:
            return original(session, *args, **kwargs)
        except Exception as error:
            if saved and type(error).__name__ in _NOT_VALID:
                self._drop(session, *saved)
            raise

    def _is_bound(
        self, value_of: Callable[..., Any], original: Callable[..., Any], binding: Any, args: Any, kwargs: Any
    ) -> Any:
        result = original(binding, *args, **kwargs)
        with contextlib.suppress(Exception):
            name = args[0] if args else kwargs["name"]
            self._bound.setdefault(binding, {})[name] = value_of(args, kwargs)
        return result

    def _cleared(self, original: Callable[..., Any], binding: Any, args: Any, kwargs: Any) -> Any:
        self._bound.pop(binding, None)
        return original(binding, *args, **kwargs)

    def _feeds_of_binding(self, args: Any, kwargs: Any) -> dict[str, Any]:
        return dict(self._bound.get(args[0] if args else kwargs["iobinding"], {}))

    def _save(self, session: Any, feeds_of: Callable[[], Mapping[str, Any]]) -> tuple[str, str] | None:
        """Save a call before it runs, because the run may end the process; return its folder and its slot."""
        model = self._sessions.get(session)
        if model is None or model.full:
            return None
        with self._quietly(model.label), self._lock:
            model.looked += 1
            model.full = model.looked >= _LOOKS * self._settings.calls
            kinds = {each.name: each.type for each in session.get_inputs()}
            arrays = {name: array(name, value, kinds.get(name, "")) for name, value in feeds_of().items()}
            nbytes = model.nbytes + sum(one.nbytes for one in arrays.values())
            if nbytes > self._settings.most_bytes:
                most = f"{self._settings.most_bytes >> 20} MiB"
                raise UnsavedError(f"a further call, as the data of this model would take more than {most}")
            if not self._take(f"{model.key}.{call_digest(arrays)}"):
                return None
            slots = (f"{model.key}-{number}" for number in range(self._settings.calls))
            slot = next(filter(self._take, slots), None)
            if slot is None:
                model.full = True
                return None
            folder = write_data_set(self._home(model), arrays)
            model.nbytes = nbytes
            self._note("saved", folder=folder, model=model.label)
            return folder, slot
        return None

    def _drop(self, session: Any, folder: str, slot: str) -> None:
        """Remove the saved data of a call whose inputs do not fit the model."""
        with self._quietly(folder):
            remove_data_set(folder)
            self._note("dropped", folder=folder, model="")
            self._release(slot)
            self._sessions[session].full = False

    def _take(self, name: str) -> bool:
        """Return whether no process of the application has taken a name before."""
        if not self._settings.journal:
            new = name not in self._taken
            self._taken.add(name)
            return new
        try:
            os.close(os.open(os.path.join(self._settings.journal, name), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _release(self, name: str) -> None:
        if self._settings.journal:
            os.remove(os.path.join(self._settings.journal, name))
        self._taken.discard(name)

    def _note(self, what: str, **fields: str) -> None:
        event = {"what": what, **fields}
        if not self._settings.journal:
            self._events.append(event)
            return
        path = os.path.join(self._settings.journal, f"{os.getpid()}.jsonl")
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(json.dumps(event) + "\n")

    @contextlib.contextmanager
    def _quietly(self, label: str) -> Iterator[None]:
        """Note any exception of the recorder, once for each model, and continue."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the application runs on
            with contextlib.suppress(Exception):
                why = str(error) if isinstance(error, UnsavedError) else f"{type(error).__name__}: {error}"
                if isinstance(error, PermissionError):
                    why += " (name another folder with --out)"
                if self._take(f"unsaved-{abs(hash((label, why)))}"):
                    self._note("unsaved", model=label, why=why)

    def _home(self, model: _Model) -> str:
        """Return the folder of a model's data sets, where ``Suite.data_folder`` of the harness finds them."""
        out = self._settings.out
        if not model.path:
            if not out:
                raise UnsavedError("it has no folder; name one with --out")
            return os.path.join(out, model.key[:12])
        folder, name = os.path.split(model.path)
        stem = os.path.splitext(name)[0]
        if not out:
            return os.path.join(folder, stem) if models_in(folder) > 1 else folder
        home = os.path.join(out, f"{stem}-{model.key[:8]}")
        os.makedirs(home, exist_ok=True)
        with contextlib.suppress(OSError):  # no links here: the reader of the data knows the model's place
            os.symlink(model.path, os.path.join(home, name))
        return home


def _second(args: Any, kwargs: Any) -> Any:
    """Return the inputs of a run, or the value of a bound input: the second argument."""
    names = ("input_feed", "input_dict_ort_values", "arr_on_cpu", "ortvalue")
    return args[1] if len(args) > 1 else next(kwargs[name] for name in names if name in kwargs)


def _no_feeds(_args: Any, _kwargs: Any) -> Any:
    raise UnsavedError("calls of run_with_ortvaluevector are not recorded")


def _at_address(args: Any, kwargs: Any) -> Any:
    """Return a function that reads an input bound by its address, at the time of the run."""
    names = ("name", "device_type", "device_id", "element_type", "shape", "buffer_ptr")
    given = {**dict(zip(names, args)), **kwargs}

    def read() -> Any:
        import ctypes

        import numpy as np

        if given["device_type"] != "cpu" or isinstance(given["element_type"], int):
            raise UnsavedError(f"an input bound by its address, on {given['device_type']}, is not recorded")
        dtype = np.dtype(given["element_type"])
        count = int(np.prod(given["shape"], dtype=np.int64))
        content = ctypes.string_at(given["buffer_ptr"], count * dtype.itemsize)
        return np.frombuffer(content, dtype).reshape(given["shape"])

    return read
