"""Read a case: the model with its external data, its test data or generated inputs, and its settings."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from harness.core.records.model_settings import ModelSettings
from harness.corpus.beside.data_sets import ModelSignature, check_names, hash_data_set, read_data_sets
from harness.corpus.beside.decoder_names import sizes_by_config
from harness.corpus.beside.file_state import FileState, cached_state, files_state, model_state
from harness.corpus.beside.frozen_judgement import read_frozen
from harness.corpus.beside.genai_config import read_genai_config
from harness.corpus.beside.side_file import read_side_file
from harness.corpus.beside.tolerance_file import TOLERANCE_FILE, ExpectedTolerance, read_tolerance
from harness.corpus.beside.unused_data import refuse_unused
from harness.corpus.caches.row_cache import LARGEST_CONTENT, open_row_cache
from harness.corpus.case import Case, state_of_files
from harness.corpus.inputs.attempts import FIRST
from harness.corpus.inputs.input_domains import input_domains
from harness.corpus.inputs.recipe import Recipe, fitted, inputs_of
from harness.corpus.kept_case import KEPT_FORMAT, pack_case, unpack_case
from harness.corpus.model.external import external_files
from harness.corpus.model.model_errors import (
    ChangedFileError,
    DamagedError,
    InputError,
    MisnamedError,
    ModelError,
    SettingsError,
    blame,
)
from harness.corpus.model.model_facts import model_facts
from harness.corpus.model.model_file import read_lean
from harness.corpus.model.nodes import weight_names
from harness.corpus.model.ort_format.onnx_copy import unpacked
from harness.corpus.model.port import Port, model_text, value_type
from harness.corpus.suites.suite import Suite
from harness.corpus.work.estimate import work_of

if TYPE_CHECKING:
    import onnx

SEED = 0
"""The default seed of generated inputs."""


def load_case(
    suite: Suite,
    model: str,
    dimensions: Mapping[str, int],
    seed: int = SEED,
    settings: ModelSettings | None = None,
) -> Case:
    """Read one model with its data sets, or with a generated one if it has none.

    External data is checked and hashed, not loaded. Facts that were read before come from the suite's row
    cache: for a built-in suite if the model still exists; for a folder if the model, its test data and its
    external data look unchanged; see ``file_state``.

    Sizes of symbolic dimensions are given by name; for others see ``harness.corpus.inputs.open_sizes``. The
    matrix's settings for this model override those of the model's side file, which override ``dimensions``.

    Raises:
        ChangedError: A file changes while it is read, or is damaged in the cache.
        MisnamedError: Its file has a name that is not UTF-8.
        SettingsError: The settings, the side file or ``genai_config.json`` do not fit the model.
        ModelError: The model, its external data or its test data is missing or broken.
    """
    path = suite.model_path(model)
    if model in suite.misnamed:
        raise MisnamedError(path)
    settings = settings or ModelSettings()
    # Before anything is read: a later change then gives another state the next time.
    began = time.time_ns()
    state = _state(suite, model, path)
    of_model = files_state([path])
    row_cache = None if suite.cache is None or state is None else open_row_cache(suite.cache)
    name = repr((KEPT_FORMAT, str(path), sorted(dimensions.items()), seed, settings))
    kept = None if row_cache is None or state is None else row_cache.get(name, state.text)
    case = None if kept is None else unpack_case(kept, path)
    if (damaged := suite.damaged(model, data=case is None)) is not None:
        raise DamagedError(damaged)
    if case is None:
        try:
            case, external = _read(suite, model, path, dimensions, seed, settings)
        except ModelError as error:
            if _state(suite, model, path) != state:
                raise ChangedFileError(path) from error
            raise
        if _state(suite, model, path) != state:
            raise ChangedFileError(path)
        settled = external and state and state.settled(began) and external.settled(began)
        kept_whole = case.nbytes < LARGEST_CONTENT and case.source is None
        if row_cache is not None and external and state and settled and kept_whole:
            row_cache.put(name, state.text, pack_case(case))
    owner = "your" if suite.kind != "built_in" else "the profile's" if suite.frozen else "the suite's"
    case = msgspec.structs.replace(case, state=state_of_files(of_model, case.state), owner=owner)
    return _frozen(case, suite, model)


def _state(suite: Suite, model: str, path: Path) -> FileState | None:
    """Return the state under which the facts of a model are kept; None if it is unknown."""
    return cached_state(path) if suite.kind == "built_in" else model_state(path, suite.data_folder(model))


def _frozen(case: Case, suite: Suite, model: str) -> Case:
    """Return a case with its frozen facts, if the suite is frozen."""
    if suite.policies is None:
        return case
    short = [one.name for one in case.data_sets if {name for name, _ in one.expected} != set(case.outputs)]
    if short:
        raise ModelError(
            case.model_path, f"a frozen case needs a golden of each output; {short[0]} has fewer"
        )
    frozen = read_frozen(case.model_path.parent, suite.policies[model], case.data_sets)
    return msgspec.structs.replace(case, frozen=frozen)


def _read(
    suite: Suite, model: str, path: Path, dimensions: Mapping[str, int], seed: int, settings: ModelSettings
) -> tuple[Case, FileState | None]:
    """Return the case from its files, and the state of its external data before it was read."""
    if suite.kind != "built_in":
        settings = settings.over(read_side_file(path))
    sizes = {**dimensions, **settings.dimensions}
    config = read_genai_config(suite.home(model)) if suite.kind != "built_in" else None
    with blame(path):
        file = read_lean(path)
        proto, digest = file.model, file.digest.copy()
        files = external_files(proto, path)
        external = files_state(files)
        for one in files:
            with one.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        declared = {port.name: port.type for port in _ports(proto.graph.input, sizes)}
        if config is not None:
            sizes = {**sizes_by_config(config, declared), **sizes}
            declared = {port.name: port.type for port in _ports(proto.graph.input, sizes)}
        outputs = _ports(proto.graph.output, sizes)
        weights = weight_names(proto.graph)
        ports = tuple(Port(name=name, type=kind) for name, kind in declared.items() if name not in weights)
        facts = model_facts(proto)
        domains = input_domains(proto, ports)
    check_names(path, settings, ports, outputs)
    home = suite.data_folder(model)
    tolerance = ExpectedTolerance()
    recipe = None
    data_sets = read_data_sets(path, home, ModelSignature(ports=ports, outputs=outputs, declared=declared))
    if data_sets:
        if settings.inputs:
            what = f"its settings describe inputs, but nothing is generated: it has {data_sets[0].name}"
            raise SettingsError(path, what, "remove one of the two")
        with blame(home / TOLERANCE_FILE, InputError):
            tolerance = read_tolerance(home)
    else:
        if suite.kind == "folder" and ports:
            refuse_unused(path, home)
        recipe = Recipe(
            of=digest.hexdigest(),
            seed=seed,
            ports=ports,
            given=sizes,
            settings=settings.described,
            domains=domains,
        )
        with blame(path):
            recipe = fitted(recipe, proto).at(FIRST)
        ports = recipe.ports
        data_sets = (inputs_of(path, recipe),)
    for data_set in data_sets:
        hash_data_set(digest, data_set)
    digest.update(repr(tolerance).encode())
    with blame(path):
        work, node_work = work_of(proto, data_sets[0].inputs)
    case = Case(
        model_path=path,
        external=files,
        ports=ports,
        outputs=tuple(port.name for port in outputs),
        output_types=tuple(port.type for port in outputs),
        data_sets=data_sets,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        digest=digest.hexdigest(),
        state=external.text if external else "missing",
        facts=facts,
        work=work,
        node_work=node_work,
        recipe=recipe,
        fixed=settings.dimensions if settings.fixed is True else {},
        tasks=settings.tasks,
        vary=tuple(settings.vary),
    )
    if file.in_ort_format:
        with blame(path):
            onnx_path = unpacked(proto, file.digest.hexdigest())
        case = msgspec.structs.replace(case, model_path=onnx_path, source=path)
    return case, external


def _ports(infos: "Iterable[onnx.ValueInfoProto]", sizes: Mapping[str, int]) -> tuple[Port, ...]:
    return tuple(Port(name=model_text(info.name), type=value_type(info.type, sizes)) for info in infos)
