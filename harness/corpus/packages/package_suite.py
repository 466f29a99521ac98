"""A model package as a suite: each variant of each component is a model, and so is each component.

The variants of one component mean the same. One of them, the reference, has the golden for all: the one whose
values are the finest. It is found when a model is first asked for, as that takes reading the models.
"""

import functools
from os.path import realpath
from pathlib import Path

from harness.core.records.variant_use import VariantUse
from harness.corpus.beside.genai_config import CONFIG_NAME, read_genai_config
from harness.corpus.model.model_errors import ModelError
from harness.corpus.packages.confined_path import leads_out, why_refused
from harness.corpus.packages.read_package import PATH_OPTIONS, read_package
from harness.corpus.packages.with_weights import WEIGHTS_OPTION, with_weights
from harness.corpus.suites.model_folder import is_text
from harness.corpus.suites.model_package import ModelPackage, PackageVariant
from harness.corpus.suites.suite import Suite, suites_cache


def open_package(root: Path) -> Suite:
    """Open a package as a suite named after its folder.

    Raises:
        PackageError: It is no package, or one that the text of the format forbids.
    """
    root = root.absolute()
    package = read_package(root)
    files: dict[str, Path] = {}
    uses: dict[str, VariantUse] = {}
    weights: dict[str, Path] = {}
    for component in package.components:
        for variant in component.variants:
            if (path := model_of(variant)) is None or not is_text(f"{component.name}{variant.name}"):
                continue
            name = f"{component.name}/{variant.name}"
            files[name] = path
            uses[name] = _use(variant)
            if variant.ort is not None and WEIGHTS_OPTION in variant.ort.session_options:
                weights[name] = Path(variant.ort.session_options[WEIGHTS_OPTION])
        if any(name.startswith(f"{component.name}/") for name in files):
            uses[component.name] = VariantUse(is_component=True)
    return Suite(
        name=root.name if root.name not in {"", ".", ".."} else root.resolve().name,
        root=root,
        kind="package",
        names=tuple(sorted(uses)),
        cache=suites_cache(),
        files=files,
        uses=uses,
        package=package,
        placed=functools.partial(_placed, files, weights),
        siblings=functools.cache(functools.partial(_sibling, package, files)),
        computes=functools.partial(_computes, files),
    )


def model_of(variant: PackageVariant) -> Path | None:
    """Return the model of a variant: as onnxruntime has it, or its only one for another consumer."""
    if variant.ort is not None and variant.ort.model_file is not None:
        found = variant.ort.model_file
        if not found.is_dir():
            return found
        return _only_model(found)
    if variant.ort is None and variant.consumers:
        named = _named_for_genai(variant.folder)
        return variant.folder / named if named else _only_model(variant.folder)
    return None


def _named_for_genai(folder: Path) -> str:
    """Return the name of the decoder's file by ``genai_config.json``; empty if there is none."""
    if leads_out(realpath(folder), folder / CONFIG_NAME):
        return ""
    try:
        config = read_genai_config(folder)
    except ModelError:  # told with the model, which has the same file beside it
        return ""
    named = "" if config is None else config.model.decoder.filename
    refused = why_refused(named) or leads_out(realpath(folder), folder / named)
    return "" if refused else named


def _only_model(folder: Path) -> Path | None:
    inside = realpath(folder)
    found = [one for one in folder.glob("*.onnx") if not leads_out(inside, one)] if folder.is_dir() else []
    return found[0] if len(found) == 1 else None


def _use(variant: PackageVariant) -> VariantUse:
    ort = variant.ort
    entries = {} if ort is None else ort.session_options
    return VariantUse(
        ep=variant.ep,
        options={} if ort is None else ort.provider_options,
        entries={key: value for key, value in entries.items() if key not in PATH_OPTIONS},
    )


def _placed(files: dict[str, Path], weights: dict[str, Path], model: str) -> Path:
    found = files[model]
    return with_weights(found, weights[model]) if model in weights else found


def _sibling(package: ModelPackage, files: dict[str, Path], model: str) -> str:
    from harness.corpus.packages.variant_values import sibling  # numpy; only reading the models needs it

    return sibling(package, files, model)


def _computes(files: dict[str, Path], model: str) -> str:
    from harness.corpus.packages.variant_values import computes  # as above

    return computes(files, model)
