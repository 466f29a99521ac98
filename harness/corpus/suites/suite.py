"""A suite: a named collection of models. A folder is one, and so are models that code makes."""

import functools
import hashlib
import importlib.metadata
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from harness.core.comparison.policy import Policy
from harness.core.records.variant_use import VariantUse
from harness.core.text.errors import Problem, UsageError, one_line
from harness.core.text.visible_text import visible
from harness.corpus.caches.cache import cache_root, fill_once
from harness.corpus.caches.intact import find_damaged, mend
from harness.corpus.model.model_errors import DamagedError, ModelError
from harness.corpus.suites.model_folder import find_models, is_text, models_among
from harness.corpus.suites.model_package import ModelPackage

FORMAT = 2
"""Rises when suites in the cache change although no version of their sources does."""


NO_ONNX = Problem(where="onnx", what="the package onnx is not installed", hint="pip install onnx")


def _none(_model: str) -> str:
    return ""


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """A named, ordered collection of models.

    Attributes:
        name: The name of a built-in suite, or a folder's base name.
        root: The folder that holds the models.
        kind: ``built_in``: each folder below the root is a model; ``folder``: each ``.onnx`` file is one;
            ``package``: each variant of a component is one, and each component.
        names: The models, sorted.
        misnamed: Those of them whose file has a name that is not UTF-8: names here are spelled out, and the
            models cannot be run.
        shared: Folders that hold several models, relative to the root with forward slashes.
        cache: Folder that keeps what was read from the models, if anything is kept.
        make: Fills the empty folder of one model, if models are made at their first use.
        make_all: Fills the empty folder of the suite, if it is made as a whole.
        policies: Model -> how it is judged, if the suite is frozen: goldens and noise are in its files, and
            nothing is asked of the CPU provider. None for any other suite.
        package: The package that it is; None for any other suite.
        files: Model -> its file, for the variants of a package.
        uses: Model -> how it is used, for a package.
        placed: Returns the file of a variant, beside its weights if they lie in another folder.
        siblings: Returns the model of the package whose golden a model has; empty if it has its own.
        computes: Returns the precision that a variant computes in; empty if it cannot be read.
    """

    name: str
    root: Path
    kind: Literal["built_in", "folder", "package"]
    names: tuple[str, ...]
    misnamed: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    cache: Path | None = None
    make: Callable[[str, Path], None] | None = None
    make_all: Callable[[Path], None] | None = None
    policies: Mapping[str, Policy] | None = None
    package: ModelPackage | None = None
    files: Mapping[str, Path] = {}
    uses: Mapping[str, VariantUse] = {}
    placed: Callable[[str], Path] = Path
    siblings: Callable[[str], str] = _none
    computes: Callable[[str], str] = _none

    @property
    def frozen(self) -> bool:
        """Whether goldens, noise and policies are part of the suite, as those of a profile are."""
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
        if self.package is not None:
            name = model if model in self.files else self.siblings(model)
            try:
                return self.placed(name)
            except (OSError, UsageError) as error:
                raise ModelError(self.files[name], one_line(error)) from error
        inside = f"{model}/model.onnx" if self.kind == "built_in" else model
        return self.root / inside

    @property
    def is_cached(self) -> bool:
        """Whether its models are made by code, and kept in the cache."""
        return self.make is not None or self.make_all is not None

    def damaged(self, model: str, *, data: bool) -> Path | None:
        """Return a file of a model that the cache has damaged or lost; None if there is none.

        Without ``data`` only the model itself is looked at.
        """
        only = "" if data else "model.onnx"
        if self.make_all is not None:
            return find_damaged(self.root, model, only)
        if self.make is not None:
            return find_damaged(self.root / model, "" if only else None, only)
        return None

    def mend(self, model: str) -> str:
        """Make what is damaged in the cache again; return what to tell the user.

        Raises:
            DamagedError: The cache cannot be written.
        """
        folder = self.root if self.make_all is not None else self.root / model
        try:
            count = mend(folder, self.make_all or self._maker(model))
        except (OSError, UsageError) as error:
            raise DamagedError(folder, one_line(error)) from error
        return f"{folder}: files in the cache that were damaged or missing, and are made again: {count}"

    def home(self, model: str) -> Path:
        """Return the folder whose other files belong to a model: that of its file, or of its variant."""
        if self.package is None:
            return self.model_path(model).parent
        name = model if model in self.files else self.siblings(model)
        return next(
            variant.folder
            for component in self.package.components
            for variant in component.variants
            if name == f"{component.name}/{variant.name}"
        )

    def _maker(self, model: str) -> Callable[[Path], None]:
        assert self.make is not None  # noqa: S101 - only such suites make single models
        return functools.partial(self.make, model)

    def data_folder(self, model: str) -> Path:
        """Return the folder of a model's ``test_data_set_N``; it need not exist.

        That is the model's folder, or ``<stem>/`` in it if other models share it.
        """
        path = self.model_path(model)
        if self.package is not None:
            return self.home(model)
        return path.with_suffix("") if _parent(model) in self.shared else path.parent


class SuiteSource(msgspec.Struct, frozen=True, kw_only=True):
    """What opens the suites of one name.

    Attributes:
        form: How the name is written in a matrix, such as ``fuzz:SEED:COUNT``.
        line: What the suites have, short enough for 80 columns.
        open: Opens a suite by its whole name, and raises ``UsageError`` if there is none.
    """

    form: str
    line: str
    open: Callable[[str], Suite]


def open_folder(path: Path) -> Suite:
    """Open a folder as a suite: every ``.onnx`` below it, symbolic links followed, none listed twice.

    Raises:
        UsageError: There is no such folder, it cannot be read, or it holds no model.
    """
    root = path.absolute()
    # "." and ".." have no name of their own; any other path keeps the name that was written.
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
    """Open one ``.onnx`` or ``.ort`` file as a suite that holds nothing else.

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


def suite_of_code(
    name: str, names: tuple[str, ...], make: Callable[[str, Path], None], packages: tuple[Path, ...]
) -> Suite:
    """Return a suite of the code in some folders, each model of which is made when it is first asked for.

    Raises:
        UsageError: onnx is not installed, or the cache cannot be written.
    """
    cache = suites_cache()
    # Empty at first; made now, so that a cache that cannot be written is reported before anything runs.
    root = fill_once(cache / f"{name}-{versions()}-{code_digest(*packages)}-v{FORMAT}", lambda _folder: None)
    return Suite(name=name, root=root, kind="built_in", names=names, cache=cache, make=make)


def suites_cache() -> Path:
    """Return the folder of the cache for suites, and for what was read of their models."""
    return cache_root() / "suites"


def versions() -> str:
    """Return the versions of packages on which the data of made models depend.

    Raises:
        UsageError: onnx is not installed.
    """
    try:
        return "-".join(
            f"{name}{importlib.metadata.version(name)}" for name in ("onnx", "numpy", "ml_dtypes")
        )
    except importlib.metadata.PackageNotFoundError as error:
        raise UsageError(NO_ONNX) from error


@functools.cache
def code_digest(*packages: Path) -> str:
    """Return a digest of the sources in some folders, for which what they built is valid."""
    digest = hashlib.blake2b(digest_size=8)
    for package in packages:
        for source in sorted(package.iterdir()):
            if source.suffix in {".json", ".py"}:
                digest.update(source.read_bytes())
    return digest.hexdigest()


def _parent(model: str) -> str:
    return model.rpartition("/")[0]
