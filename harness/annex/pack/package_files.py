"""Write a model package: its manifest, its variants, and what they share."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from harness.annex.pack.choosing import ProvedVariant
from harness.annex.pack.compiling import COMPILED_FILE
from harness.annex.pack.proof import Proof
from harness.core.files.writing import write_new
from harness.core.records.cell import SESSION_ENTRY
from harness.corpus.beside.genai_config import CONFIG_NAME
from harness.corpus.case import Case
from harness.corpus.packages.asset_digest import asset_address, asset_folder
from harness.corpus.suites.model_package import ASSETS, PACKAGE_MANIFEST
from harness.plan.surroundings import surroundings_of

GENAI = "genai"
"""The consumer of ``executor_info`` under which a generation folder's files are named."""

_ORT_FILE = "ort_info.json"

_SIDE_FILES = (".json", ".txt", ".model", ".jinja")
"""Endings of the files beside a model that onnxruntime-genai reads: tokenizer, templates, configuration."""


class PackedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model of a package: a component with its variants.

    Attributes:
        component: Its name in the package.
        home: The folder that it comes from.
        compiled: Variant -> the folder with its compiled model, and the provider's compatibility string.
    """

    component: str
    home: Path
    variants: tuple[ProvedVariant, ...]
    compiled: Mapping[str, tuple[Path, str]] = {}


def write_package(root: Path, models: Sequence[PackedModel], proof: Proof, name: str) -> None:
    """Write a package into a new folder.

    Raises:
        OSError: The folder exists, or cannot be written.
    """
    root.mkdir(parents=True)
    shared = _Shared(root)
    components = {}
    for model in models:
        cases = {one.name: proof.cases[one.cell.id] for one in model.variants}
        counted = Counter(_content(case) for name, case in cases.items() if name not in model.compiled)
        side = _side_files(model.home)
        tokenizer = shared.add(side) if side else ""
        variants = {}
        for one in model.variants:
            case = cases[one.name]
            folder = root / model.component / one.name
            folder.mkdir(parents=True)
            if one.name in model.compiled:
                files, compatibility = model.compiled[one.name]
                shutil.copytree(files, folder, dirs_exist_ok=True)
                file = COMPILED_FILE
            else:
                compatibility = ""
                file = _placed(case, folder, shared if counted[_content(case)] > 1 else None)
            variants[one.name] = _variant(folder, one, proof, file, compatibility, tokenizer)
            if tokenizer:
                shutil.copyfile(model.home / CONFIG_NAME, folder / CONFIG_NAME)
        components[model.component] = {"variants": variants}
    manifest = {
        "schema_version": "1.0",
        "package_name": name,
        "description": "Written by ep-harness pack; every variant was run and compared where it says.",
        "components": components,
    }
    _write_json(root / PACKAGE_MANIFEST, manifest)


def _write_json(path: Path, content: object) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False)
    write_new(path, f"{text}\n".encode())


class _Shared:
    """The shared assets of a package: folders that are named by their content, each written once."""

    def __init__(self, root: Path) -> None:
        self.folder = root / ASSETS

    def add(self, files: Mapping[str, Path]) -> str:
        """Add files, relative path -> file, and return the address of the asset."""
        new = self.folder / "new"
        for path, file in files.items():
            (new / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, new / path)
        address = asset_address(new)
        place = self.folder / asset_folder(address)
        if place.exists():
            shutil.rmtree(new)
        else:
            new.rename(place)
        return address


def _placed(case: Case, folder: Path, shared: _Shared | None) -> str:
    """Copy a model and its external data, and return how the manifest names the model."""
    home = case.model_path.parent
    files = {path.relative_to(home).as_posix(): path for path in (case.model_path, *case.external)}
    if shared is not None:
        return f"{shared.add(files)}/{case.model_path.name}"
    for path, file in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / path)
    return case.model_path.name


def _content(case: Case) -> str:
    """Return a digest of a model's files: equal ones are stored once."""
    digest = hashlib.sha256()
    for path in (case.model_path, *case.external):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _side_files(home: Path) -> dict[str, Path]:
    """Return the files of a generation folder that all its variants share; empty for any other model."""
    if not (home / CONFIG_NAME).is_file():
        return {}
    found = (path for path in sorted(home.iterdir()) if path.suffix in _SIDE_FILES and path.is_file())
    return {path.name: path for path in found if path.name != CONFIG_NAME}


def _variant(
    folder: Path, one: ProvedVariant, proof: Proof, file: str, compatibility: str, tokenizer: str
) -> dict[str, Any]:
    target = proof.targets[one.cell.target]
    options, entries = target.options_at(one.cell), dict(_entries(one, proof))
    info: dict[str, Any] = {"model_file": file}
    if entries:
        info["session_options"] = entries
    if options:
        info["provider_options"] = options
    # A file, not a table in the manifest: archives drop a folder that is empty.
    _write_json(folder / _ORT_FILE, info)
    consumers: dict[str, Any] = {"ort": _ORT_FILE}
    if tokenizer:
        consumers[GENAI] = {"config": CONFIG_NAME, "tokenizer": tokenizer}
    return {
        "variant_directory": f"{folder.parent.name}/{folder.name}",
        "ep": one.provider,
        **({"device": one.device} if one.device else {}),
        **({"compatibility_string": compatibility} if compatibility else {}),
        "executor_info": consumers,
        "additional_metadata": {"proved": _provenance(one, proof)},
    }


def _entries(one: ProvedVariant, proof: Proof) -> Iterator[tuple[str, str]]:
    mode = proof.targets[one.cell.target].mode_at(one.cell)
    if mode is not None:
        yield from mode.session.items()
    for axis, value in one.cell.axes:
        if axis.startswith(SESSION_ENTRY):
            yield axis.removeprefix(SESSION_ENTRY), value


def _provenance(one: ProvedVariant, proof: Proof) -> dict[str, Any]:
    """Return what a variant rests on: the record, and where it was made."""
    target = proof.targets[one.cell.target]
    fingerprint = proof.fingerprints.get(one.cell.target, {})
    seen = surroundings_of(fingerprint, target.provider, target.device)
    row = one.record
    bits = [each.delivered_bits for each in row.outputs if each.delivered_bits is not None]
    found = {
        "cell": row.cell,
        "verdict": str(row.verdict),
        "reason": row.reason,
        "model": row.model_digest,
        "bits": min(bits, default=None),
        "p50_ms": one.p50_ms,
        "onnxruntime": seen.onnxruntime,
        "ep_version": seen.ep_version,
        "drivers": seen.drivers,
        "device": seen.device,
        "processor": fingerprint.get("processor"),
        "platform": fingerprint.get("platform"),
        "date": datetime.now(UTC).date().isoformat(),
    }
    return {key: value for key, value in found.items() if value not in (None, "", {}, [])}
