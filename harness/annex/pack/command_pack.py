"""`ep-harness pack`: write a model package of what was proved here, or check any package."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import msgspec

from harness.annex.pack.checking import PackageCheck, check_package
from harness.annex.pack.choosing import choose
from harness.annex.pack.command_pack_screen import check_json, check_screen
from harness.annex.pack.compiling import compiled_variants
from harness.annex.pack.package_files import PackedModel, write_package
from harness.annex.pack.proof import Proof, prove
from harness.cli.output import notify, print_result, wrapped
from harness.cli.targets import ProviderRequest, Tested, wanted_matrix
from harness.core.records.facts import CPU_PROVIDER
from harness.core.text.counted import plural
from harness.core.text.errors import (
    EXIT_INCOMPLETE,
    EXIT_OK,
    EXIT_UNEXPECTED,
    HarnessError,
    UsageError,
    one_line,
)
from harness.core.text.visible_text import visible
from harness.corpus.beside.genai_config import CONFIG_NAME
from harness.corpus.packages.package_suite import open_package
from harness.corpus.packages.read_package import read_package
from harness.corpus.suites.suite import Suite, open_folder
from harness.corpus.suites.suites import open_model
from harness.plan.matrix import Matrix
from harness.plan.target import Target


class NotPackedError(HarnessError):
    """No package is written: the text says why, in one line or two."""


class LeftOutOf(msgspec.Struct, frozen=True, kw_only=True):
    """A target that a component has no variant for."""

    component: str
    target: str
    why: str


def pack_models(model: str, matrix_file: str, out: Path | None, *, as_json: bool) -> int:
    """Prove, choose, write and check; the package appears only if all of it is right."""
    if not model or out is None:
        what = "a package needs a model, or a folder of models, and a new folder to write"
        raise UsageError.at("arguments", what, "ep-harness pack MODEL --out PACKAGE, or pack --check PACKAGE")
    if out.exists():
        raise UsageError.at(out, "exists already", "name a new folder, or remove this one")
    suite = _suite(model)
    matrix = _matrix(matrix_file, model)
    notify(f"proving      {plural(len(suite.models()), 'model')} on {_names(matrix)}")
    proof = prove(suite, matrix, notify)
    with _beside(out) as scratch:
        packed, left = _chosen(suite, proof, scratch)
        fresh = scratch / out.name
        write_package(fresh, packed, proof, out.name)
        targets = tuple(proof.targets.values())
        found = _checked(fresh, msgspec.structs.replace(matrix, targets=targets), as_json=as_json, left=left)
        if found.wrong:
            notify("refused      the package is not written: a variant, or a selection, is not right")
            return EXIT_UNEXPECTED
        try:
            fresh.rename(out)
        except OSError as error:
            raise UsageError.at(out, f"cannot be written: {one_line(error.strerror or error)}") from error
    notify(f"package      {visible(str(out))}")
    return EXIT_OK


def check_given(package: Path, matrix_file: str, *, model: str, out: Path | None, as_json: bool) -> int:
    """Check a package from anywhere; the content of its shared assets must be what their addresses say."""
    if model or out is not None:
        what = "it checks a package, and writes none"
        raise UsageError.at("--check", what, "omit MODEL and --out, or omit --check")
    read_package(package, hashed=True)
    matrix = _with_cpu(_matrix(matrix_file, ""))
    found = _checked(package, matrix, as_json=as_json, left=())
    if found.wrong:
        return EXIT_UNEXPECTED
    return EXIT_INCOMPLETE if len(found.untried) == len(found.variants) else EXIT_OK


def _checked(package: Path, matrix: Matrix, *, as_json: bool, left: Sequence[LeftOutOf]) -> PackageCheck:
    suite = open_package(package)
    notify(f"checking     {plural(len(suite.files), 'variant')} on {_names(matrix)}")
    found = check_package(suite, matrix, notify)
    told = check_json(found) | ({"left_out": list(left)} if left else {})
    print_result(told, _screen(found, left), as_json=as_json)
    return found


def _screen(found: PackageCheck, left: Sequence[LeftOutOf]) -> Iterator[str]:
    yield from check_screen(found)
    for one in left:
        yield from wrapped(
            visible(one_line(f"{one.component} on {one.target}: {one.why}", 240)), "left out  "
        )


def _chosen(
    suite: Suite, proof: Proof, scratch: Path
) -> tuple[tuple[PackedModel, ...], tuple[LeftOutOf, ...]]:
    """Return the models of the package, and what is left out.

    Raises:
        NotPackedError: A model has no variant that is right on the CPU provider.
    """
    packed: list[PackedModel] = []
    left: list[LeftOutOf] = []
    names = _components(suite)
    for model in suite.models():
        variants, out = choose(proof, model)
        if not any(one.provider == CPU_PROVIDER for one in variants):
            why = next((one.why for one in out if _is_cpu(proof.targets[one.target])), "it was not tried")
            raise NotPackedError(
                f"{model}: its variant for the CPU provider is not right: {one_line(why)}\n"
                "    every package has one, for machines on which nothing else matches; repair the model"
            )
        component = names[model]
        found = compiled_variants(proof, variants, scratch / "compiled" / component)
        left += [
            LeftOutOf(component=component, target=one.target, why=one.why) for one in (*out, *found.left)
        ]
        packed.append(
            PackedModel(
                component=component, home=suite.home(model), variants=variants, compiled=found.compiled
            )
        )
    return tuple(packed), tuple(left)


def _components(suite: Suite) -> dict[str, str]:
    """Return model -> the name of its component: the stem of its file, or its path where stems are equal."""
    stems = {model: _stem(PurePosixPath(model), suite.name) for model in suite.models()}
    count = Counter(stems.values())
    return {
        model: stem if count[stem] == 1 else model.removesuffix(".onnx").replace("/", "-")
        for model, stem in stems.items()
    }


def _stem(path: PurePosixPath, suite: str) -> str:
    """Return the name of a model; a file ``model.onnx`` has that of its folder."""
    return path.stem if path.stem != "model" else path.parent.name or suite


def _suite(model: str) -> Suite:
    folder = Path(model)
    if not folder.is_dir():
        return open_model(model)
    suite = open_folder(folder)
    if (folder / CONFIG_NAME).is_file() and len(suite.models()) > 1:
        what = f"a generation folder of {len(suite.models())} models"
        raise UsageError.at(folder, what, "only decoders of one model can be packed")
    return suite


def _matrix(file: str, model: str) -> Matrix:
    tested = Tested(folders=(model,)) if model and Path(model).is_dir() else Tested()
    if file and not file.endswith(".toml"):
        raise UsageError.at("--matrix", f"got {file!r}", "name a matrix file (*.toml)")
    return wanted_matrix(ProviderRequest(provider=file, models=tested))


def _with_cpu(matrix: Matrix) -> Matrix:
    if any(_is_cpu(target) for target in matrix.targets):
        return matrix
    cpu = Target(name="cpu-of-this-machine", provider=(CPU_PROVIDER,))
    return msgspec.structs.replace(matrix, targets=(*matrix.targets, cpu))


def _is_cpu(target: Target) -> bool:
    return target.provider == (CPU_PROVIDER,)


def _names(matrix: Matrix) -> str:
    return one_line(visible(", ".join(target.name for target in matrix.targets)), 200)


@contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """Yield a folder on the same file system, which is removed at the end."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".pack-", dir=out.parent))
    except OSError as error:
        raise UsageError.at(out, f"cannot be written: {one_line(error.strerror or error)}") from error
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
