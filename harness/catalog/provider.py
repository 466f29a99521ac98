"""One execution provider (EP) as a file of the catalogue describes it."""

from typing import Annotated, Literal

import msgspec

from harness.catalog.option import DynamicOption, NonEmptyText, Option, PrecisionMode, Sources

HardwareKind = Literal["cpu", "gpu", "npu", "mobile", "browser", "other"]
ProviderState = Literal["active", "preview", "deprecated", "removed"]
Platform = Literal["linux", "windows", "macos", "android", "ios", "browser"]
Registration = Literal["static", "bridge", "plugin"]


class OperatorSupport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Documented operators of an EP.

    Attributes:
        operators: Operator type -> its restriction, which may be empty. No entries: see the documents.
    """

    source: Sources
    operators: dict[NonEmptyText, str] = {}


class VersionRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The requirements of a release of onnxruntime, or of the EP's package.

    Attributes:
        onnxruntime: Release, such as ``1.23`` or ``>=1.24.4``.
        needs: Other software, such as ``CANN 8.2`` or ``CUDA 12, cuDNN 9``.
        source: Documents.
    """

    onnxruntime: NonEmptyText
    needs: NonEmptyText
    source: Sources


class Variable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An environment variable that a stranger's file may set: no value of it loads code.

    Attributes:
        name: Its name; the EP, or a library that it uses, reads it.
        meaning: One line.
        source: Documents, or sources that read it.
    """

    name: Annotated[str, msgspec.Meta(pattern="^[A-Z][A-Z0-9_]*$")]
    meaning: NonEmptyText
    source: Sources


class Probe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another way to create sessions, if an EP computes nothing with its defaults.

    Attributes:
        needs_file: A file without which it is not tried; may be empty.
        meaning: What this way means, in one line.
    """

    options: dict[NonEmptyText, str] = {}
    env: dict[NonEmptyText, str] = {}
    needs_file: str = ""
    meaning: NonEmptyText


class Accuracy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error, larger than rounding, that a document allows for some operators.

    A cell with such an error is right, and marked ``approximate`` with the size of the error.

    Attributes:
        operators: Operators of ONNX's own domain; for ``first_input`` those of onnxruntime.
        error: Largest error of an element ``y``, in a unit that depends on ``of``: for a result as a fraction
            of ``1 + abs(y)``, for the first input as a fraction of the largest magnitude in its row, for a
            rounding in units in the last place.
        of: Where the error occurs: in the ``result``; in the ``first_input``, which is rounded before it is
            multiplied; or in the ``rounding`` of an exact operand to a narrower type, to either neighbour.
        document: Short name of the document, for a sentence.
        source: The place of the statement.
    """

    operators: tuple[NonEmptyText, ...]
    error: Annotated[float, msgspec.Meta(gt=0)]
    of: Literal["result", "first_input", "rounding"] = "result"
    document: NonEmptyText
    source: Sources


class TriedReleases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Releases that an EP computed in, on a device or its simulator, when the shipped expectations were made.

    ``doctor`` says when a newer one is installed.

    Attributes:
        in_build: Releases of onnxruntime whose build contains it; of the CPU EP: of the runtime itself.
        plugin: Releases of its plugin package.
    """

    in_build: tuple[NonEmptyText, ...] = ()
    plugin: tuple[NonEmptyText, ...] = ()


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about one EP.

    Attributes:
        name: The name exactly as ``get_providers()`` spells it.
        aliases: Other spellings in use; never a name of another EP.
        kind: The kind of device it computes on, in one word; ``mobile`` for phones' own interfaces.
        hardware: The family of devices; providers with the same word may use the same devices. ``cpu`` and
            ``cloud`` can be shared freely.
        state: ``removed`` means that no current onnxruntime can contain it.
        state_note: Details of the state, in one line.
        listed_since: First onnxruntime release whose ``get_all_providers()`` has it; empty if there is none,
            or if it is older than 1.15.
        deprecated_in: onnxruntime release that deprecated it; may be empty.
        removed_in: First onnxruntime release without it; may be empty.
        platforms: Operating systems on which it computes.
        registration: ``static`` (compiled into the library), ``bridge`` (its own library, loaded on demand),
            ``plugin`` (a library registered at run time); several if builds differ.
        wheels: Python distributions that contain it.
        plugin_packages: Import names of packages with ``get_library_path()``.
        advice: What to do if it is not in the build, in one sentence.
        device_advice: What to do if it finds no device; may be empty.
        libraries: Beginning of a library's file name -> what provides that library.
        probes: Other ways to try, in order, if its defaults find nothing to compute on.
        binding_device: Device name of IO binding, such as ``cuda``; empty for CPU memory, or if unknown.
        delivers: Coarser precisions in which it computes float32 models by default, on some devices.
        delivers_if: Such a precision -> features of a processor. Where the processor is the device, and has
            none of them, the provider does not deliver it.
        processor_options: Options, with the values by which the processor is the device of a built-in
            provider; an option that is not set counts as its default.
        unknown_options: Treatment of an unknown option: ``refused``, ``ignored``, ``passed_on`` (to the
            vendor's compiler, unchecked), or ``unconfirmed``.
        true_false: Spelling of booleans, true first.
        also_booleans: Other spellings of booleans, besides these two and their capitalised and lower-case
            forms.
        options: Every provider option.
        graph_capture: The option that makes it capture and replay graphs if it is 1; empty if there is none.
        dynamic_options: Options that change while a session is open.
        unknown_dynamic_options: Treatment of an unknown one of these.
        variables: Environment variables that a bundle may set; it may set no others.
        precision_modes: Every way to choose the arithmetic.
        operators: Documented operator support; None without a list.
        accuracy: Errors, larger than rounding, that its documents allow.
        versions: Needs of releases.
        tried: Releases that the shipped expectations were made with.
        source: Public documents with these facts.
    """

    schema: Literal[1]
    name: NonEmptyText
    aliases: tuple[NonEmptyText, ...] = ()
    vendor: NonEmptyText
    kind: HardwareKind
    hardware: NonEmptyText
    state: ProviderState
    state_note: str = ""
    listed_since: str = ""
    deprecated_in: str = ""
    removed_in: str = ""
    platforms: tuple[Platform, ...]
    registration: tuple[Registration, ...]
    wheels: tuple[NonEmptyText, ...] = ()
    plugin_packages: tuple[NonEmptyText, ...] = ()
    advice: NonEmptyText
    device_advice: str = ""
    libraries: dict[NonEmptyText, NonEmptyText] = {}
    probes: tuple[Probe, ...] = msgspec.field(default=(), name="probe")
    binding_device: str = ""
    delivers: tuple[Literal["tf32", "float16", "bfloat16"], ...] = ()
    delivers_if: dict[NonEmptyText, tuple[NonEmptyText, ...]] = {}
    processor_options: dict[NonEmptyText, NonEmptyText] = {}
    unknown_options: Literal["refused", "ignored", "passed_on", "unconfirmed"]
    true_false: tuple[NonEmptyText, NonEmptyText] = ("1", "0")
    also_booleans: tuple[NonEmptyText, ...] = ()
    options: Annotated[tuple[Option, ...], msgspec.Meta(description="[[option]]")] = msgspec.field(
        default=(), name="option"
    )
    graph_capture: str = ""
    dynamic_options: tuple[DynamicOption, ...] = msgspec.field(default=(), name="dynamic_option")
    unknown_dynamic_options: Literal["refused", "ignored", "unconfirmed"] = "unconfirmed"
    variables: tuple[Variable, ...] = msgspec.field(default=(), name="variable")
    precision_modes: tuple[PrecisionMode, ...] = msgspec.field(default=(), name="precision")
    operators: OperatorSupport | None = None
    accuracy: tuple[Accuracy, ...] = ()
    versions: tuple[VersionRule, ...] = msgspec.field(default=(), name="version")
    tried: TriedReleases = TriedReleases()
    source: Sources

    @property
    def booleans(self) -> tuple[str, ...]:
        """Return every spelling of a boolean that it reads, those of ``true_false`` first."""
        forms = [form for word in self.true_false for form in (word, word.capitalize(), word.lower())]
        return tuple(dict.fromkeys((*self.true_false, *forms, *self.also_booleans)))

    def option(self, key: str, *, plugin: bool | None = None) -> Option | None:
        """Return the option of that key, if any, for a plugin or for the build.

        For either if ``plugin`` is None.
        """
        named = (option for option in self.options if option.key == key)
        return next((option for option in named if plugin is None or option.taken(plugin=plugin)), None)

    def precision(self, name: str) -> PrecisionMode | None:
        """Return the precision mode of that name, or None."""
        return next((mode for mode in self.precision_modes if mode.name == name), None)
