"""Suites of models: the zoo, onnx's own, and folders. Listing opens no model and imports no onnx."""

import functools
import hashlib
import importlib.metadata
import importlib.util
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import ml_dtypes
import msgspec
import numpy as np

from harness.core.errors import Problem, UsageError, one_line, valid_names
from harness.core.policy import Policy
from harness.core.text import visible
from harness.corpus.cache import cache_root, fill_once
from harness.corpus.errors import DamagedError, ModelError
from harness.corpus.intact import find_damaged, mend
from harness.corpus.walk import MODEL_SUFFIXES, find_models, is_text, models_among

FUZZ = "fuzz:"
"""Prefix of a suite of generated models, before the seed and the count."""

PROFILE = "profile:"
"""Prefix of a profile, before its label; ``harness.profiles`` opens its suite."""

SUITES: dict[str, str] = {
    "onnx-node": "ONNX's operator tests, a small model for each",
    "onnx-simple": "ONNX's small graphs: sequences, strings, gradients",
    "onnx-pytorch-operator": "single PyTorch operators, exported",
    "onnx-pytorch-converted": "PyTorch modules, exported: Conv2d, BatchNorm, ...",
    "onnx-light": "nine image classifiers; constants for trained weights",
    "zoo": "CNNs, transformers, quantized ...; seeded weights",
    "generate": "decoders of language models with a cache, as shipped",
    "corners": "NaN, infinity, wide integers, ties, empty tensors",
    "fuzz:SEED:COUNT": "generated operators and graphs, by seed",
    "profile:NAME@N": "the frozen cases of a conformance profile",
}
"""The built-in suites by name, with one line each, short enough for 80 columns."""

_FORMAT = 2
"""Increase it when suites in the cache change although no version of their sources does."""


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """A named, ordered collection of models.

    Attributes:
        name: A key of ``SUITES``, or a folder's base name.
        root: The folder that holds the models.
        kind: ``built_in``: each folder below the root is a model; ``folder``: each ``.onnx`` file is one.
        names: The models, sorted.
        misnamed: Models whose file has a name that is not UTF-8: names here are spelled out, and the models
            cannot be run.
        shared: Folders that hold several models, relative to the root with forward slashes.
        cache: Folder that keeps the facts read from the models, if anything is kept.
        make: Fills the empty folder of one model, if models are made at their first use.
        make_all: Fills the empty folder of the suite, if it is made as a whole.
        policies: Model -> its policy, if the suite is frozen: goldens and noise are in its files, and the CPU
            provider is not asked. None for any other suite.
    """

    name: str
    root: Path
    kind: Literal["built_in", "folder"]
    names: tuple[str, ...]
    misnamed: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    cache: Path | None = None
    make: Callable[[str, Path], None] | None = None
    make_all: Callable[[Path], None] | None = None
    policies: Mapping[str, Policy] | None = None

    @property
    def frozen(self) -> bool:
        """Return whether goldens, noise and policies are part of the suite, as in a profile."""
        return self.policies is not None

    def models(self) -> tuple[str, ...]:
        """Return the models' names, sorted: relative paths with forward slashes, or names of tests."""
        return self.names

    def model_path(self, model: str) -> Path:
        """Return the file of one model, which is made if necessary.

        Raises:
            ModelError: It cannot be made, for example because the disk is full.
        """
        if self.make is not None:
            try:
                fill_once(self.root / model, self._maker(model), with_digests=True)
            except UsageError as error:
                raise ModelError(self.root / model / "model.onnx", error.problems[0].what) from error
        inside = f"{model}/model.onnx" if self.kind == "built_in" else model
        return self.root / inside

    @property
    def is_cached(self) -> bool:
        """Whether its models are made by code, and kept in the cache."""
        return self.make is not None or self.make_all is not None

    def damaged(self, model: str, *, data: bool) -> Path | None:
        """Return a file of a model that the cache has damaged or lost; None if there is none.

        Without ``data`` only the model itself is checked.
        """
        only = "" if data else "model.onnx"
        if self.make_all is not None:
            return find_damaged(self.root, model, only)
        if self.make is not None:
            return find_damaged(self.root / model, "" if only else None, only)
        return None

    def mend(self, model: str) -> str:
        """Repair the damaged parts in the cache; return a message for the user.

        Raises:
            DamagedError: The cache cannot be written.
        """
        folder = self.root if self.make_all is not None else self.root / model
        try:
            count = mend(folder, self.make_all or self._maker(model))
        except (OSError, UsageError) as error:
            raise DamagedError(folder, one_line(error)) from error
        return f"{folder}: files in the cache that were damaged or missing, and are made again: {count}"

    def _maker(self, model: str) -> Callable[[Path], None]:
        assert self.make is not None  # noqa: S101 - only such suites make single models
        return functools.partial(self.make, model)

    def data_folder(self, model: str) -> Path:
        """Return the folder of a model's ``test_data_set_N``; it need not exist.

        It is the model's folder, or ``<stem>/`` in it if other models share that folder.
        """
        path = self.model_path(model)
        return path.with_suffix("") if _parent(model) in self.shared else path.parent


def open_suite(name: str) -> Suite:
    """Open a built-in suite; the first use on a machine takes some seconds.

    Raises:
        UsageError: There is no such suite, onnx lacks its test data, or the cache cannot be written.
    """
    if name.startswith(FUZZ):
        return _fuzz(name)
    if name not in SUITES:
        hint = valid_names(name, SUITES, len(SUITES))
        raise UsageError.at("suite", f"there is no suite {name!r}", hint)
    make_all: Callable[[Path], None] | None = None
    match name:
        case "zoo":
            from harness.corpus.zoo.roster import write_zoo_model, zoo_models

            return _made_singly(name, tuple(sorted(zoo_models())), write_zoo_model, ("zoo",))
        case "generate":
            from harness.corpus.decoders.roster import decoder_names, write_decoder

            return _made_singly(name, decoder_names(), write_decoder, ("decoders", "zoo"))
        case "onnx-node" | "onnx-light" | "corners":
            # The data depends on these versions and, for our own models, on the code that makes them.
            revision = f"{_code_digest(name)}-" if name == "corners" else ""
            entry = suites_cache() / f"{name}-{_versions()}-{revision}v{_FORMAT}"
            make_all = _writer(name)
            root = fill_once(entry, make_all, with_digests=True)
        case _:
            root = _onnx_test_data(name)
    names = tuple(sorted(entry.name for entry in root.iterdir() if (entry / "model.onnx").is_file()))
    return Suite(name=name, root=root, kind="built_in", names=names, cache=suites_cache(), make_all=make_all)


def open_folder(path: Path) -> Suite:
    """Open a folder as a suite: every ``.onnx`` below it, symbolic links followed, none listed twice.

    Raises:
        UsageError: There is no such folder, it cannot be read, or it holds no model.
    """
    root = path.absolute()
    # "." and ".." have no name of their own; any other path keeps its spelling.
    name = root.name if root.name not in {"", ".", ".."} else root.resolve().name
    found = find_models(root)
    misnamed = frozenset(visible(model) for model in found if not is_text(model))
    names = tuple(sorted({*misnamed, *filter(is_text, found)}))
    crowded = frozenset(parent for parent, models in Counter(map(_parent, names)).items() if models > 1)
    cache = suites_cache()
    return Suite(
        name=name or "root",
        root=root,
        kind="folder",
        names=names,
        misnamed=misnamed,
        shared=crowded,
        cache=cache,
    )


def open_file(path: Path) -> Suite:
    """Open one ``.onnx`` or ``.ort`` file as a suite of a single model.

    Raises:
        UsageError: Its folder cannot be read.
    """
    if not is_text(str(path)):
        raise UsageError.at(ascii(str(path)), "the name of the file is not UTF-8", "rename it")
    root = path.absolute().parent
    try:
        models = models_among(one.name for one in root.iterdir())
    except OSError as error:
        what = f"the folder cannot be read: {one_line(error.strerror or error)}"
        raise UsageError.at(root, what) from error
    shared = frozenset({""}) if len({*models, path.name}) > 1 else frozenset[str]()
    name = root.name or "root"
    return Suite(name=name, root=root, kind="folder", names=(path.name,), shared=shared, cache=suites_cache())


def open_model(name: str) -> Suite:
    """Return a suite of one model from its name on a command line.

    The name is the path of an ``.onnx`` file, whose test data may be beside it; or a built-in suite and one
    of its models, such as ``zoo/mnist-small-op12``.

    Raises:
        UsageError: There is no such file or model.
    """
    path = Path(name)
    suite, slash, model = name.partition("/")
    if path.exists() or not slash or not (suite in SUITES or suite.startswith(FUZZ)):
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
        hint = f"a file, or suite/model with one of the suites {', '.join(SUITES)}"
        raise UsageError.at(path, "there is no such model", hint)
    if path.suffix.lower() not in MODEL_SUFFIXES:
        raise UsageError.at(path, "is not named *.onnx", "name an ONNX model, or one in ORT format (*.ort)")
    return open_file(path)


def suites_cache() -> Path:
    """Return the folder of the cache for suites, and for the facts read from their models."""
    return cache_root() / "suites"


def _parent(model: str) -> str:
    return model.rpartition("/")[0]


def _versions() -> str:
    try:
        onnx_version = importlib.metadata.version("onnx")
    except importlib.metadata.PackageNotFoundError as error:
        raise UsageError(_NO_ONNX) from error
    return f"onnx{onnx_version}-numpy{np.__version__}-ml_dtypes{ml_dtypes.__version__}"


def _made_singly(
    name: str, names: tuple[str, ...], make: Callable[[str, Path], None], packages: tuple[str, ...]
) -> Suite:
    """Return a suite made by code in some packages; each model is made at its first use."""
    cache = suites_cache()
    # Empty at first; made now, so that a read-only cache is reported before anything runs.
    root = fill_once(
        cache / f"{name}-{_versions()}-{_code_digest(*packages)}-v{_FORMAT}", lambda _folder: None
    )
    return Suite(name=name, root=root, kind="built_in", names=names, cache=cache, make=make)


def _fuzz(name: str) -> Suite:
    """Return a suite of generated models; the cache keeps a model for all suites of its seed."""
    from harness.corpus.fuzz import fuzz_maker, fuzz_name, fuzz_suite_name, parse_fuzz

    seed, count = parse_fuzz(name)
    names = tuple(fuzz_name(seed, number) for number in range(count))
    packages = ("forms", "grown", "variants", "zoo")
    return _made_singly(fuzz_suite_name(seed), names, fuzz_maker(seed, operator_tests), packages)


def operator_tests() -> Path:
    """Return the folder of ONNX's operator tests, which is made if necessary."""
    return open_suite("onnx-node").root


@functools.cache
def _writer(suite: str) -> Callable[[Path], None]:
    """Return the function that writes a suite into an empty folder.

    It writes the same each time, so that suites can be compared.
    """
    return functools.partial(_write, suite)


def _write(suite: str, folder: Path) -> None:
    """Write a suite into an empty folder; imports onnx."""
    from harness.corpus.corners.write import write_corner_suite
    from harness.corpus.materialise import write_light_suite, write_node_suite

    if suite == "onnx-node":
        write_node_suite(folder)
    elif suite == "onnx-light":
        write_light_suite(folder, _onnx_test_data(suite))
    else:
        write_corner_suite(folder)


@functools.cache
def _code_digest(*packages: str) -> str:
    """Return a digest of the sources of packages beside this module; their products are valid for it."""
    digest = hashlib.blake2b(digest_size=8)
    for package in packages:
        for source in sorted((Path(__file__).parent / package).iterdir()):
            if source.suffix in {".json", ".py"}:
                digest.update(source.read_bytes())
    return digest.hexdigest()


def _onnx_test_data(suite: str) -> Path:
    # For a top-level package this finds the folder without running its code.
    spec = importlib.util.find_spec("onnx")
    if spec is None or spec.origin is None:
        raise UsageError(_NO_ONNX)
    data = Path(spec.origin).parent / "backend" / "test" / "data" / suite.removeprefix("onnx-")
    if not data.is_dir():
        what, hint = "this build of onnx comes without its test data", "install onnx from PyPI"
        raise UsageError.at(data, what, hint)
    return data


_NO_ONNX = Problem(where="onnx", what="the package onnx is not installed", hint="pip install onnx")
