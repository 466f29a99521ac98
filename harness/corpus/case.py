"""A case: one model with everything that is needed to run it and to check the answer."""

import hashlib
from pathlib import Path

import msgspec

from harness.core.records.run_work import Work
from harness.core.values.value import value_bytes
from harness.corpus.beside.data_sets import DataSet, hash_data_set
from harness.corpus.beside.file_state import FileState, files_state
from harness.corpus.beside.frozen_judgement import Frozen
from harness.corpus.beside.session_chain import SessionChain
from harness.corpus.inputs.attempts import InputAttempt
from harness.corpus.inputs.recipe import Recipe, inputs_of
from harness.corpus.model.model_facts import ModelFacts
from harness.corpus.model.port import Port, ValueType
from harness.corpus.packages.choice import PackageChoice, Sibling
from harness.corpus.work.work_share import NodeWork


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


def model_files_state(case: Case) -> str:
    """Return the present state of a model's files: ``case.state`` if they are unchanged since they were read.

    It checks the status of each file, and opens none.
    """
    external = files_state(case.external)
    return state_of_files(
        files_state([case.source or case.model_path]), external.text if external else "missing"
    )


def state_of_files(of_model: FileState | None, external: str) -> str:
    """Return the state of a model's files, from that of its own and the text of its external data's."""
    return f"{of_model.text if of_model else 'missing'} {external}"


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
