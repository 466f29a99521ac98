"""``manifest.json`` of a bundle: the fault, its target, and the files that show it."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harness.core.files.json_schema import json_schema_of
from harness.core.records.verdict import WRONG_NUMBERS, Verdict

BUNDLE_SCHEMA = 1

MANIFEST = "manifest.json"
BUNDLE_MODEL = "model.onnx"
_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_+-]*(\.[A-Za-z0-9_+-]+)*$"
"""A part of a file's path in a bundle: no separator, no leading or trailing point."""

_PATH = _NAME.removesuffix("$") + r"(/[A-Za-z0-9_][A-Za-z0-9_+-]*(\.[A-Za-z0-9_+-]+)*){0,3}$"

WRONG_OUTPUTS = frozenset(
    {*WRONG_NUMBERS, Verdict.NAN_MISMATCH, Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH}
)
"""Verdicts that expected outputs decide."""

FilePath = Annotated[str, Meta(pattern=_PATH, max_length=200)]
"""Relative, with slashes."""

_PRECEDING = r"^(preceding/[0-9]{1,4}/)"
ModelPath = Annotated[str, Meta(pattern=_PRECEDING + "model[.]onnx$")]
ValuePath = Annotated[
    str, Meta(pattern=_PRECEDING + r"?(test_data_set_[0-9]{1,4}|found)/(input|output)_[0-9]{1,6}[.]pb$")
]

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
ByteCount = Annotated[int, Meta(ge=0)]
NotNegative = Annotated[float, Meta(ge=0)]
MOST_RUNS = 1000
RunCount = Annotated[int, Meta(ge=1, le=MOST_RUNS)]
BundleValueKind = Annotated[
    str, Meta(pattern=r"^((sequence|optional)\(){0,8}(tensor|map)\){0,8}$", examples=["sequence(tensor)"])
]


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the bundle."""

    sha256: Sha256
    bytes: ByteCount


class BundledValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An input, or an output.

    Attributes:
        name: Its name in the model.
        kind: The ONNX message that the file holds: ``tensor``, ``map``, ``sequence(...)``, ``optional(...)``.
        file: Its file.
        limit: For an output: the largest distance from the expected values that is no fault. Null if only its
            form and its NaNs and infinities are compared.
    """

    name: str
    kind: BundleValueKind
    file: ValuePath
    limit: NotNegative | None = None


class BundledSet(msgspec.Struct, frozen=True, kw_only=True):
    """A data set: the inputs of one run of the session, and the outputs that it must return."""

    inputs: tuple[BundledValue, ...]
    outputs: tuple[BundledValue, ...]


class BundledModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that must run before in the same process."""

    model: ModelPath
    inputs: tuple[BundledValue, ...]


class BundledFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The fault in short; ``REPORT.md`` has all its facts.

    Attributes:
        id: As in ``faults.jsonl``.
        sentence: What is wrong.
        verdict: The verdict of a run of the bundle's model.
        phase: Where it ends.
        cause: For a crash: the signal or exit code.
        message: For an error: its message without numbers, names and paths. For a wrong value: which run
            shows it.
        outcome: ``always`` or ``sometimes``.
        trials: How often it was tried.
        failures: How often it failed.
        fed: The inputs of the cell's model; the smallest model has its own inputs.
    """

    id: str
    sentence: str
    verdict: Verdict
    phase: str = ""
    cause: str = ""
    message: str = ""
    outcome: Literal["always", "sometimes", "never", "unknown"] = "always"
    trials: int = 0
    failures: int = 0
    fed: str = ""


class BundledPlugin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The library of an EP that is registered at run time.

    Attributes:
        package: Python package with ``get_library_path()``; empty if only a library was given.
        library: File name of the library, without its folder.
        version: Version of the package or library.
        sha256: SHA-256 of the library that ran, else of the library on the harness's machine; empty if
            neither is known.
    """

    package: str = ""
    library: str = ""
    version: str = ""
    sha256: str = ""


class BundledTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the EP is used. A value with ``<path>`` named a file; the user of the bundle replaces it by a path.

    Attributes:
        name: Name of the target in the matrix.
        provider: The chain of providers, preferred first.
        plugin: Null for a provider of the build.
        device: Device filter: every entry must match.
        options: Provider options, including those of the cell's axes.
        env: Environment variables that the target sets.
    """

    name: str
    provider: Annotated[tuple[str, ...], Meta(min_length=1)]
    plugin: BundledPlugin | None = None
    device: dict[str, str] = {}
    options: dict[str, str] = {}
    env: dict[str, str] = {}


class BundledTolerance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tolerance of the matrix that found the fault; see ``docs/reference/tolerances.md``.

    Attributes:
        rtol: With ``atol``; null if the entry has none.
        atol: As ``rtol``.
        noise_rms: Limit in multiples of the model's rounding noise; null if the entry has none.
        noise_max: As ``noise_rms``, for a single element.
        noise_precision: The precision whose rounding makes the noise.
        steps: Quantization steps; null for the default.
        table_only: Whether the tolerance alone judges.
    """

    rtol: NotNegative | None = None
    atol: NotNegative | None = None
    noise_rms: NotNegative | None = None
    noise_max: NotNegative | None = None
    noise_precision: str = ""
    steps: NotNegative | None = None
    table_only: bool = False


class FaultEnvironment(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the fault was found.

    Attributes:
        onnxruntime: Version.
        python: Version.
        packages: Other packages that matter -> version.
        os: Operating system with its version.
        architecture: Such as ``x86_64``.
        processor: Model, as the system names it.
        devices: Devices that the EP offered: type, vendor and ids.
        libraries: SHA-256 of the libraries of EP and onnxruntime, by file name.
    """

    onnxruntime: str = ""
    python: str = ""
    packages: dict[str, str] = {}
    os: str = ""
    architecture: str = ""
    processor: str = ""
    devices: tuple[dict[str, str], ...] = ()
    libraries: dict[str, str] = {}


class BundleManifest(msgspec.Struct, frozen=True, kw_only=True):
    """``manifest.json``.

    Attributes:
        schema: Version of this format.
        harness: Version of ort-ep-harness.
        fault: What is wrong.
        target: The EP.
        axes: Session settings of the cell; provider options are in ``target``. ``session.<key>`` is an entry
            of the session's configuration. ``scenario.<key>`` is a setting of the scenario, such as
            ``threads``. ``repeat.<key>`` is how often it is run.
        environment: Where it was found.
        tolerance: The tolerance that judged; null for the built-in ones.
        trials: Number of trials before the fault counts as gone.
        runs: Runs of a session with the first data set in each trial.
        time_limit_s: Seconds after which a trial counts as hung.
        data_sets: Data sets that run one after another in one session; then the first one runs again.
        preceding: Models that run before in the same process.
        graph_capture: Option with which graphs are captured, and the device of bound values; empty for none.
        dynamic_options: Keys of the scenario ``dynamic_options`` with their values, the default first.
        found: Wrong outputs as they were found.
        files: All files except this one.
    """

    schema: Literal[1]
    harness: str
    fault: BundledFault
    target: BundledTarget
    axes: dict[str, str]
    environment: FaultEnvironment
    tolerance: BundledTolerance | None = None
    trials: RunCount = 1
    runs: RunCount = 2
    time_limit_s: Annotated[float, Meta(gt=0, le=86400)] = 600.0
    data_sets: Annotated[tuple[BundledSet, ...], Meta(min_length=1, max_length=1000)]
    preceding: Annotated[tuple[BundledModel, ...], Meta(max_length=1000)] = ()
    graph_capture: tuple[str, ...] = ()
    dynamic_options: tuple[tuple[str, tuple[str, ...]], ...] = ()
    found: tuple[BundledValue, ...] = ()
    files: Annotated[dict[FilePath, FileEntry], Meta(max_length=20_000)]

    def paths(self) -> set[str]:
        """Return the files of the models and their data, including external data."""
        values = [value for one in self.data_sets for value in (*one.inputs, *one.outputs)]
        values += [value for one in self.preceding for value in one.inputs]
        models = [BUNDLE_MODEL, *(one.model for one in self.preceding)]
        files = [*models, *(value.file for value in (*values, *self.found))]
        beside = [f"{file.rpartition('.')[0]}.data" for file in files]
        return {*files, *(file for file in beside if file in self.files)}


def manifest_schema() -> dict[str, Any]:
    """Return the JSON Schema: docs/reference/bundle.schema.json."""
    return json_schema_of(BundleManifest, f"{MANIFEST} of a bundle")
