"""Suites by name: ONNX's own, the corners, and those behind a door.

Listing a suite opens no model and imports no onnx.
"""

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.core.text.errors import UsageError, valid_names
from harness.corpus.caches.cache import fill_once
from harness.corpus.suites.model_folder import MODEL_SUFFIXES
from harness.corpus.suites.suite import (
    FORMAT,
    NO_ONNX,
    Suite,
    SuiteSource,
    code_digest,
    open_file,
    suites_cache,
    versions,
)
from harness.doors import SUITES, behind, load_registered


def suite_lines() -> dict[str, str]:
    """Return how each suite is named in a matrix, with one line about it."""
    listed = [*_OWN.values(), *(load_registered(SUITES, name, SuiteSource) for name in behind(SUITES))]
    return {source.form: source.line for source in listed}


def open_suite(name: str) -> Suite:
    """Open a suite by its name in a matrix; the first use on a machine takes some seconds.

    Raises:
        UsageError: There is no such suite, onnx lacks its test data, or the cache cannot be written.
    """
    source = _source(name)
    if source is None:
        lines = suite_lines()
        raise UsageError.at("suite", f"there is no suite {name!r}", valid_names(name, lines, len(lines)))
    return source.open(name)


def _source(name: str) -> SuiteSource | None:
    """Return what opens a suite: by its whole name, or by the part before a colon."""
    own = _OWN.get(name)
    if own is not None:
        return own
    first, colon, _ = name.partition(":")
    if first not in behind(SUITES):
        return None
    source = load_registered(SUITES, first, SuiteSource)
    return source if bool(colon) == (":" in source.form) else None


def open_model(name: str) -> Suite:
    """Return a suite of one model from its name on a command line.

    The name is the path of an ``.onnx`` file, whose test data may be beside it; or a built-in suite and one
    of its models, such as ``zoo/mnist-small-op12``.

    Raises:
        UsageError: There is no such file or model.
    """
    path = Path(name)
    suite, slash, model = name.partition("/")
    if path.exists() or not slash or _source(suite) is None:
        return _model_file(path)
    opened = open_suite(suite)
    if model not in opened.models():
        what = f"the suite {suite!r} has no model {model!r}"
        raise UsageError.at(name, what, valid_names(model, opened.models()))
    return msgspec.structs.replace(opened, names=(model,))


def _model_file(path: Path) -> Suite:
    if path.is_dir():
        raise UsageError.at(path, "is a folder", "name one .onnx file in it")
    if not path.exists():
        hint = f"a file, or suite/model with one of the suites {', '.join(suite_lines())}"
        raise UsageError.at(path, "there is no such model", hint)
    if path.suffix.lower() not in MODEL_SUFFIXES:
        raise UsageError.at(path, "is not named *.onnx", "name an ONNX model, or one in ORT format (*.ort)")
    return open_file(path)


def operator_tests() -> Path:
    """Return the folder of ONNX's operator tests, which is made if necessary."""
    return open_suite("onnx-node").root


def _made(name: str) -> Suite:
    """Open a suite that is written into the cache as a whole."""
    # The data depends on these versions and, for our own models, on the code that makes them.
    revision = f"{code_digest(Path(__file__).parents[1] / name)}-" if name == "corners" else ""
    write = _writer(name)
    root = fill_once(suites_cache() / f"{name}-{versions()}-{revision}v{FORMAT}", write, with_digests=True)
    return _of_folder(name, root, write)


def _shipped(name: str) -> Suite:
    """Open a suite whose files are in the package onnx."""
    return _of_folder(name, _onnx_test_data(name), None)


def _of_folder(name: str, root: Path, make_all: Callable[[Path], None] | None) -> Suite:
    names = tuple(sorted(entry.name for entry in root.iterdir() if (entry / "model.onnx").is_file()))
    return Suite(name=name, root=root, kind="built_in", names=names, cache=suites_cache(), make_all=make_all)


@functools.cache
def _writer(suite: str) -> Callable[[Path], None]:
    """Return the function that writes a suite into an empty folder.

    It writes the same each time, so that suites can be compared.
    """
    return functools.partial(_write, suite)


def _write(suite: str, folder: Path) -> None:
    """Write a suite into an empty folder; imports onnx."""
    from harness.corpus.corners.write import write_corner_suite
    from harness.corpus.suites.materialise import write_light_suite, write_node_suite

    if suite == "onnx-node":
        write_node_suite(folder)
    elif suite == "onnx-light":
        write_light_suite(folder, _onnx_test_data(suite))
    else:
        write_corner_suite(folder)


def _onnx_test_data(suite: str) -> Path:
    # For a top-level package this finds the folder without running its code.
    spec = importlib.util.find_spec("onnx")
    if spec is None or spec.origin is None:
        raise UsageError(NO_ONNX)
    data = Path(spec.origin).parent / "backend" / "test" / "data" / suite.removeprefix("onnx-")
    if not data.is_dir():
        what, hint = "this build of onnx comes without its test data", "install onnx from PyPI"
        raise UsageError.at(data, what, hint)
    return data


_OWN = {
    source.form: source
    for source in (
        SuiteSource(form="onnx-node", line="ONNX's operator tests, a small model for each", open=_made),
        SuiteSource(
            form="onnx-simple", line="ONNX's small graphs: sequences, strings, gradients", open=_shipped
        ),
        SuiteSource(form="onnx-pytorch-operator", line="single PyTorch operators, exported", open=_shipped),
        SuiteSource(
            form="onnx-pytorch-converted",
            line="PyTorch modules, exported: Conv2d, BatchNorm, ...",
            open=_shipped,
        ),
        SuiteSource(
            form="onnx-light", line="nine image classifiers; constants for trained weights", open=_made
        ),
        SuiteSource(form="corners", line="NaN, infinity, wide integers, ties, empty tensors", open=_made),
    )
}
"""Suites that need no annex, by name."""
