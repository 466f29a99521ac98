"""A case: one model with everything that is needed to run it and to check the answer."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.core.records.model_settings import ModelSettings
from harness.core.records.run_work import Work
from harness.core.values.value import NamedValues, from_wire, to_wire, value_bytes
from harness.corpus.beside.data_sets import (
    DataSet,
    ModelSignature,
    check_names,
    hash_data_set,
    read_data_sets,
)
from harness.corpus.beside.decoder_names import sizes_by_config
from harness.corpus.beside.file_state import FileState, cached_state, files_state, model_state
from harness.corpus.beside.frozen_judgement import Frozen, read_frozen
from harness.corpus.beside.genai_config import read_genai_config
from harness.corpus.beside.session_chain import SessionChain
from harness.corpus.beside.side_file import read_side_file
from harness.corpus.beside.tolerance_file import TOLERANCE_FILE, ExpectedTolerance, read_tolerance
from harness.corpus.beside.unused_data import refuse_unused
from harness.corpus.caches.row_cache import LARGEST_CONTENT, open_row_cache
from harness.corpus.inputs.attempts import FIRST, InputAttempt
from harness.corpus.inputs.input_domains import input_domains
from harness.corpus.inputs.recipe import Recipe, fitted, inputs_of
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
from harness.corpus.model.model_facts import ModelFacts, model_facts
from harness.corpus.model.model_file import read_lean
from harness.corpus.model.nodes import weight_names
from harness.corpus.model.ort_format.onnx_copy import unpacked
from harness.corpus.model.port import Port, ValueType, model_text, value_type
from harness.corpus.packages.choice import PackageChoice, Sibling
from harness.corpus.suites.suite import Suite
from harness.corpus.work.estimate import work_of
from harness.corpus.work.work_share import NodeWork

if TYPE_CHECKING:
    import onnx

__all__ = ["Case", "DataSet", "at_attempt", "at_draw", "load_case"]


SEED = 0
"""The default seed of generated inputs."""

_FORMAT = 13
"""Increase it when other facts of a case are kept."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One model, ready to run.

    Attributes:
        model_path: The model's file; for a model in ORT format the extracted ONNX model, in the cache.
        source: The file in ORT format; None for any other model.
        external: Its external data files, all below the model's folder.
        ports: The graph inputs that have to be fed: those without an initializer.
        outputs: Names of the graph outputs.
        output_types: Their declared types, in the same order.
        data_sets: At least one.
        rtol: Relative tolerance of the expected outputs; no execution provider is judged by it.
        atol: Absolute tolerance of the expected outputs.
        state: State of the model and its external data before they were read; see ``model_files_state``.
        digest: SHA-256 in hex over everything that the CPU provider's answer depends on or is compared with:
            the model, its external data, all data sets, and the tolerance of expected outputs.
        work: Work of one run with the first data set that was read; an estimate, which stays the same for
            data of other sizes and for other forms of the model.
        node_work: Work of each node, likewise.
        recipe: Source of its generated inputs; None if it has test data.
        fixed: Symbolic dimension -> the size by which sessions fix it, as the matrix asks.
        frozen: For a case of a profile: how it is judged, and its noise. Its golden is the expected data of
            its data sets.
        tasks: Output -> task whose answers are compared beside the values; see
            ``harness.core.agreement.agree_key``.
        owner: The owner of its test data, in words.
        vary: The dimensions that the scenario ``dynamic_shapes`` varies, in this order; empty for all.
        sibling: For a variant of a package, what it is held against; None for any other model.
        package: For a component of a package, what a runtime selects from; None for any other model.
        chain: For a folder of several sessions as one model, the sessions; None for any other model.
    """

    model_path: Path
    external: tuple[Path, ...] = ()
    ports: tuple[Port, ...]
    outputs: tuple[str, ...]
    output_types: tuple[ValueType, ...]
    data_sets: tuple[DataSet, ...]
    rtol: float
    atol: float
    digest: str
    state: str = ""
    facts: ModelFacts
    work: Work = Work()
    node_work: NodeWork = NodeWork()
    recipe: Recipe | None = None
    fixed: dict[str, int] = {}
    frozen: Frozen | None = None
    tasks: dict[str, str] = {}
    owner: str = "the suite's"
    vary: tuple[str, ...] = ()
    source: Path | None = None
    sibling: Sibling | None = None
    package: PackageChoice | None = None
    chain: SessionChain | None = None

    @property
    def model_digest(self) -> str:
        """Return the digest of the model with its test data; it is the same for all generated inputs."""
        if self.sibling is not None:
            return self.sibling.digest
        return (self.recipe.first if self.recipe else "") or self.digest

    @property
    def nbytes(self) -> int:
        """Bytes of memory for the values of all data sets."""
        return sum(
            value_bytes(value)
            for data_set in self.data_sets
            for _, value in (*data_set.inputs, *data_set.expected)
        )


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
    name = repr((_FORMAT, str(path), sorted(dimensions.items()), seed, settings))
    kept = None if row_cache is None or state is None else row_cache.get(name, state.text)
    case = None if kept is None else _unpack(kept, path)
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
            row_cache.put(name, state.text, _pack(case))
    owner = "your" if suite.kind != "built_in" else "the profile's" if suite.frozen else "the suite's"
    case = msgspec.structs.replace(case, state=_both(of_model, case.state), owner=owner)
    return _frozen(case, suite, model)


def model_files_state(case: Case) -> str:
    """Return the present state of a model's files: ``case.state`` if they are unchanged since they were read.

    It checks the status of each file, and opens none.
    """
    external = files_state(case.external)
    return _both(files_state([case.source or case.model_path]), external.text if external else "missing")


def _both(of_model: FileState | None, external: str) -> str:
    return f"{of_model.text if of_model else 'missing'} {external}"


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


def at_attempt(case: Case, attempt: InputAttempt) -> Case:
    """Return a case with the generated inputs of another attempt.

    Raises:
        ModelError: These inputs cannot be made.
    """
    if case.recipe is None or case.recipe.attempt == attempt:
        return case
    recipe = msgspec.structs.replace(case.recipe.at(attempt), first=case.model_digest)
    data_set = inputs_of(case.model_path, recipe)
    digest = hashlib.sha256(f"attempt {recipe.first}".encode())
    hash_data_set(digest, data_set)
    return msgspec.structs.replace(case, data_sets=(data_set,), digest=digest.hexdigest(), recipe=recipe)


def at_draw(case: Case, draw: int) -> Case:
    """Return a case with other generated inputs of the same kind.

    Raises:
        ModelError: These inputs cannot be made.
    """
    if case.recipe is None:
        return case
    return at_attempt(case, msgspec.structs.replace(case.recipe.attempt, draw=draw))


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


_WireValues = tuple[tuple[str, Any], ...]


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """A case in the row cache, with values in their wire form; most fields are those of ``Case``.

    Attributes:
        files: External data files, relative to the model's folder.
        state: Their state alone.
        values: Name, inputs and expected outputs of each data set.
    """

    files: tuple[str, ...]
    values: tuple[tuple[str, _WireValues, _WireValues], ...]
    ports: tuple[Port, ...]
    outputs: tuple[str, ...]
    output_types: tuple[ValueType, ...]
    rtol: float
    atol: float
    digest: str
    state: str
    facts: ModelFacts
    work: Work
    node_work: NodeWork
    recipe: Recipe | None = None
    fixed: dict[str, int] = {}
    tasks: dict[str, str] = {}
    vary: tuple[str, ...] = ()


_decoder = msgspec.msgpack.Decoder(_Kept)
_SAME = [name for name in Case.__struct_fields__ if name in _Kept.__struct_fields__]


def _pack(case: Case) -> bytes:
    kept = _Kept(
        files=tuple(str(file.relative_to(case.model_path.parent)) for file in case.external),
        values=tuple((one.name, _to_wire(one.inputs), _to_wire(one.expected)) for one in case.data_sets),
        **{name: getattr(case, name) for name in _SAME},
    )
    return msgspec.msgpack.encode(kept)


def _unpack(content: bytes, path: Path) -> Case | None:
    """Return the case from a kept entry, or None if its external data has changed."""
    kept = _decoder.decode(content)
    files = tuple(path.parent / file for file in kept.files)
    if files:
        external = files_state(files)
        if external is None or external.text != kept.state:
            return None
    data_sets = (
        DataSet(name=name, inputs=_from_wire(inputs), expected=_from_wire(expected))
        for name, inputs, expected in kept.values
    )
    same = {name: getattr(kept, name) for name in _SAME}
    return Case(model_path=path, external=files, data_sets=tuple(data_sets), **same)


def _to_wire(values: NamedValues) -> _WireValues:
    return tuple((name, to_wire(value)) for name, value in values)


def _from_wire(wires: _WireValues) -> NamedValues:
    return tuple((name, from_wire(wire)) for name, wire in wires)
