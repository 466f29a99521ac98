"""A case: one model with everything that is needed to run it and to know the answer."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.core.model_settings import ModelSettings
from harness.core.value import NamedValues, from_wire, to_wire, value_bytes
from harness.corpus.attempts import FIRST, Attempt
from harness.corpus.data_sets import DataSet, Signature, check_names, hash_data_set, read_data_sets
from harness.corpus.domain_walk import domains_of
from harness.corpus.errors import SettingsError, blame
from harness.corpus.external import external_files
from harness.corpus.facts import ModelFacts, model_facts
from harness.corpus.file_state import FileState, cached_state, files_state, model_state
from harness.corpus.model_file import parse_model, read_model_file
from harness.corpus.port import Port, ValueType, model_text, value_type
from harness.corpus.recipe import Recipe, digest_of, inputs_of
from harness.corpus.row_cache import LARGEST, open_row_cache
from harness.corpus.side_file import read_side_file
from harness.corpus.suites import Suite
from harness.corpus.tolerance_file import TOLERANCE_FILE, ExpectedTolerance, read_tolerance

if TYPE_CHECKING:
    import onnx

__all__ = ["Case", "DataSet", "at_attempt", "load_case"]


SEED = 0
"""Of generated inputs, unless somebody asks for another."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One model, ready to run.

    Attributes:
        model_path: The model's file.
        external: Its external data files, all below the model's folder.
        ports: The graph inputs that have to be fed: those without an initializer.
        outputs: Names of the graph outputs.
        output_types: Their declared types, in the same order.
        data_sets: At least one.
        rtol: Relative tolerance of the expected outputs; says nothing about any execution provider.
        atol: Absolute tolerance of the expected outputs.
        digest: SHA-256 in hex over all that the CPU provider's answer depends on, and all that it is held
            against: the model, its external data, all data sets, and the tolerance of expected outputs.
        facts: What the model is made of.
        recipe: What its inputs are made from; None where it has test data.
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
    facts: ModelFacts
    recipe: Recipe | None = None

    @property
    def model_digest(self) -> str:
        """Digest of the model with its test data, whichever inputs were generated for it."""
        return (self.recipe.first if self.recipe else "") or self.digest

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the values of all data sets take."""
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
    """Read one model with its data sets, or with a generated one, the first attempt, where it has none.

    External data is checked and hashed, not loaded. What was read before comes from the suite's row cache.
    For a built-in suite it is enough that the model is still there. For a folder the model, its test data and
    its external data must look unchanged: same files, same sizes, same times; see ``file_state``.

    Args:
        suite: The suite.
        model: One of its models.
        dimensions: Sizes of symbolic dimensions by name, for whichever model has them; for the others of
            generated inputs see ``harness.corpus.sizes``.
        seed: Of generated inputs.
        settings: What the matrix says about this very model; it goes before the model's side file, and that
            before ``dimensions``.

    Raises:
        SettingsError: The settings or the side file say what does not fit the model.
        ModelError: The model, its external data or its test data is missing or broken.
    """
    path = suite.model_path(model)
    settings = settings or ModelSettings()
    # Taken before anything is read: what changes from now on has another state the next time.
    began, state = time.time_ns(), _state(suite, model, path)
    if suite.cache is None or state is None:
        return _read(suite, model, path, dimensions, seed, settings)[0]
    row_cache = open_row_cache(suite.cache)
    name = repr((str(path), sorted(dimensions.items()), seed, settings))
    kept = row_cache.get(name, state.text)
    case = None if kept is None else _unpack(kept, path)
    if case is None:
        case, external = _read(suite, model, path, dimensions, seed, settings)
        if external and state.settled(began) and external.settled(began) and case.nbytes < LARGEST:
            row_cache.put(name, state.text, _pack(case, external))
    return case


def at_attempt(case: Case, attempt: Attempt) -> Case:
    """A case with the generated inputs of another attempt.

    Args:
        case: Of any attempt.
        attempt: Which.

    Raises:
        ModelError: These inputs cannot be made.
    """
    if case.recipe is None or case.recipe.attempt == attempt:
        return case
    recipe = msgspec.structs.replace(case.recipe.at(attempt), first=case.model_digest)
    data_set = inputs_of(case.model_path, recipe)
    digest = digest_of(recipe.first, data_set)
    return msgspec.structs.replace(case, data_sets=(data_set,), digest=digest, recipe=recipe)


def _state(suite: Suite, model: str, path: Path) -> FileState | None:
    return cached_state(path) if suite.kind == "built_in" else model_state(path, suite.data_folder(model))


def _read(
    suite: Suite,
    model: str,
    path: Path,
    dimensions: Mapping[str, int],
    seed: int,
    settings: ModelSettings,
) -> tuple[Case, FileState | None]:
    """The case from its files, with the state of its external data before it was read."""
    if suite.kind == "folder":
        settings = settings.over(read_side_file(path))
    sizes = {**dimensions, **settings.dimensions}
    with blame(path):
        content = read_model_file(path)
        proto = parse_model(content)
        digest = hashlib.sha256(content)
        files = external_files(proto, path)
        external = files_state(files)
        for file in files:
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        declared = dict(_declared(info, sizes) for info in proto.graph.input)
        weights = {weight.name for weight in proto.graph.initializer}
        weights.update(sparse.values.name for sparse in proto.graph.sparse_initializer)
        ports = tuple(Port(name=name, type=kind) for name, kind in declared.items() if name not in weights)
        produced = [_declared(info, sizes) for info in proto.graph.output]
        outputs = tuple(Port(name=name, type=kind) for name, kind in produced)
        facts = model_facts(proto)
        domains = domains_of(proto)
    check_names(path, settings, ports)
    home = suite.data_folder(model)
    tolerance = ExpectedTolerance()
    recipe = None
    data_sets = read_data_sets(path, home, Signature(ports=ports, outputs=outputs, declared=declared))
    if data_sets:
        if settings.inputs:
            name = data_sets[0].name
            what = f"its settings say what inputs are like, but nothing is generated: it has {name}"
            raise SettingsError(path, f"{what}; remove one of the two")
        with blame(home / TOLERANCE_FILE):
            tolerance = read_tolerance(home)
    else:
        recipe = Recipe(
            model=model, seed=seed, ports=ports, given=sizes, settings=settings.inputs, domains=domains
        ).at(FIRST)
        data_sets = (inputs_of(path, recipe),)
    for data_set in data_sets:
        hash_data_set(digest, data_set)
    digest.update(repr(tolerance).encode())
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
        facts=facts,
        recipe=recipe,
    )
    return case, external


def _declared(info: "onnx.ValueInfoProto", dimensions: Mapping[str, int]) -> tuple[str, ValueType]:
    return model_text(info.name), value_type(info.type, dimensions)


_WireValues = tuple[tuple[str, Any], ...]


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """A case as it lies in the row cache, values in their wire form.

    Attributes:
        files: External data files, relative to the model's folder.
        external: Their state.
    """

    files: tuple[str, ...]
    external: str
    ports: tuple[Port, ...]
    outputs: tuple[str, ...]
    output_types: tuple[ValueType, ...]
    data_sets: tuple[tuple[str, _WireValues, _WireValues], ...]
    rtol: float
    atol: float
    digest: str
    facts: ModelFacts
    recipe: Recipe | None = None


_decoder = msgspec.msgpack.Decoder(_Kept)
_encoder = msgspec.msgpack.Encoder()


def _pack(case: Case, external: FileState) -> bytes:
    kept = _Kept(
        files=tuple(str(file.relative_to(case.model_path.parent)) for file in case.external),
        external=external.text,
        ports=case.ports,
        outputs=case.outputs,
        output_types=case.output_types,
        data_sets=tuple((one.name, _to_wire(one.inputs), _to_wire(one.expected)) for one in case.data_sets),
        rtol=case.rtol,
        atol=case.atol,
        digest=case.digest,
        facts=case.facts,
        recipe=case.recipe,
    )
    return _encoder.encode(kept)


def _unpack(content: bytes, path: Path) -> Case | None:
    """The case that was kept, or None where its external data has changed."""
    kept = _decoder.decode(content)
    files = tuple(path.parent / file for file in kept.files)
    if files:
        external = files_state(files)
        if external is None or external.text != kept.external:
            return None
    return Case(
        model_path=path,
        external=files,
        ports=kept.ports,
        outputs=kept.outputs,
        output_types=kept.output_types,
        data_sets=tuple(
            DataSet(name=name, inputs=_from_wire(inputs), expected=_from_wire(expected))
            for name, inputs, expected in kept.data_sets
        ),
        rtol=kept.rtol,
        atol=kept.atol,
        digest=kept.digest,
        facts=kept.facts,
        recipe=kept.recipe,
    )


def _to_wire(values: NamedValues) -> _WireValues:
    return tuple((name, to_wire(value)) for name, value in values)


def _from_wire(wires: _WireValues) -> NamedValues:
    return tuple((name, from_wire(wire)) for name, wire in wires)
