"""One model, named on a command line: by its path, or as ``suite/model``."""

from pathlib import Path

import msgspec

from harness.core.errors import Problem, UsageError, valid_names
from harness.corpus.suites import SUITES, Suite, open_file, open_suite


def open_model(name: str) -> Suite:
    """A suite that holds nothing but the named model.

    Args:
        name: Path of an ``.onnx`` file, whose test data may lie beside it; or a built-in suite and a model of
            it, such as ``zoo/mnist-cnn-op17``.

    Raises:
        UsageError: There is neither such a file nor such a model.
    """
    path = Path(name)
    suite, slash, model = name.partition("/")
    if path.exists() or not slash or suite not in SUITES:
        return _of_file(path)
    opened = open_suite(suite)
    if model not in opened.models():
        what = f"the suite {suite!r} has no model {model!r}"
        raise UsageError(Problem(where=name, what=what, hint=valid_names(model, opened.models())))
    return msgspec.structs.replace(opened, names=(model,))


def _of_file(path: Path) -> Suite:
    if path.is_dir():
        raise UsageError(Problem(where=str(path), what="is a folder", hint="name one .onnx file in it"))
    if not path.exists():
        hint = f"a file, or suite/model with one of the suites {', '.join(SUITES)}"
        raise UsageError(Problem(where=str(path), what="there is no such model", hint=hint))
    if path.suffix.lower() != ".onnx":
        raise UsageError(Problem(where=str(path), what="is not named *.onnx", hint="name an ONNX model"))
    return open_file(path)
