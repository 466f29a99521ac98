"""A profile: the cases that a provider has to compute, by digest; the public JSON contract.

``matrices/profiles/<name>@<version>.json`` has this form. The archive beside it, ``<name>@<version>.zip``,
has the models, inputs, goldens and noise. A published version never changes: another set of cases gets the
next number.
"""

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from harness.core.files.json_schema import json_schema_of
from harness.core.records.scenario import PLAIN, SCENARIOS
from harness.core.text.errors import UsageError, one_line, valid_names
from harness.data_files import data_root

PROFILE_SCHEMA = 1

CORE = "core"
"""The feature of cases that every provider has to place and compute right; all others are extended."""

JOINT = "+"
"""Separates the names of joint features: a case needs all parts of ``float16+large_rank`` together."""


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """An extended feature: one that a provider may or may not have.

    Attributes:
        name: Short, such as ``float16`` or ``io_binding``; ``float16+large_rank`` is both together.
        meaning: One line for people.
    """

    name: str
    meaning: str


class ProfileRules(msgspec.Struct, frozen=True, kw_only=True):
    """The limits by which a profile judges, frozen with it; an output fails if it exceeds both.

    Attributes:
        tolerances: Computing precision, such as ``float32`` -> ``(rtol, atol)``.
        noise_rms: Limit of the error in multiples of the noise, root mean square over an output.
        noise_max: Limit of the largest error of an element in multiples of its noise.
        steps: Quantization steps by which an output of quantized values may differ.
    """

    tolerances: dict[str, tuple[float, float]]
    noise_rms: float
    noise_max: float
    steps: float


class ProfileCase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One case: a model with its data, in one scenario.

    Attributes:
        name: Path of its folder in the archive, such as ``onnx-node/test_add``.
        feature: ``core``, or the name of an extended feature.
        scenario: As in a matrix.
        model: SHA-256 of the model's file.
        inputs: SHA-256 over the files of its inputs, in order.
        golden: SHA-256 over the files of its goldens and their noise, in order.
        ops: Operator type -> nodes; the domain precedes it, such as ``com.microsoft.FusedMatMul``.
        types: Element types of inputs and outputs, sorted.
        opset: Version of ONNX's operators that it imports.
        precision: Computing precision, a key of ``ProfileRules.tolerances``.
    """

    name: str
    feature: str = CORE
    scenario: str = PLAIN
    model: str
    inputs: str
    golden: str
    ops: dict[str, int]
    types: tuple[str, ...]
    opset: int
    precision: str = "float32"

    @property
    def key(self) -> tuple[str, str]:
        """What distinguishes cases of a profile: the name and the scenario."""
        return self.name, self.scenario


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """The file of a profile.

    Attributes:
        schema: Version of the form.
        name: Such as ``cnn``.
        version: From 1.
        title: One line for people.
        about: Its purpose, in a few sentences.
        archive: SHA-256 of the archive.
        rules: The limits of its verdicts.
        features: The extended features, in the order of pages.
        cases: Sorted by name and scenario.
    """

    schema: int
    name: str
    version: int
    title: str
    about: str
    archive: str
    rules: ProfileRules
    features: tuple[Feature, ...]
    cases: tuple[ProfileCase, ...]

    @property
    def label(self) -> str:
        """Name and version, such as ``cnn@1``."""
        return f"{self.name}@{self.version}"

    @property
    def digest(self) -> str:
        """SHA-256 of the profile, whatever the layout of its file."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()

    def closed(self, claims: Collection[str]) -> frozenset[str]:
        """Return claimed features, with the joint features whose parts are all claimed."""
        joint = {one.name for one in self.features if set(one.name.split(JOINT)) <= set(claims)}
        return frozenset(claims) | joint


def profiles_folder() -> Path:
    """Return the folder of the shipped profiles."""
    return data_root() / "matrices" / "profiles"


def profile_labels() -> tuple[str, ...]:
    """Return the labels of the shipped profiles, sorted."""
    return tuple(sorted(path.stem for path in profiles_folder().glob("*@*.json")))


def load_profile(label: str) -> Profile:
    """Return a shipped profile.

    Raises:
        UsageError: There is none of this label, or its file cannot be read.
    """
    if label not in profile_labels():
        hint = valid_names(label, profile_labels())
        raise UsageError.at("--profile", f"there is no profile {label!r}", hint)
    path = profiles_folder() / f"{label}.json"
    try:
        return decode_profile(path.read_bytes())
    except (OSError, msgspec.MsgspecError) as error:
        raise UsageError.at(path, f"cannot be read: {one_line(error)}") from error


def decode_profile(content: bytes) -> Profile:
    """Return the profile that a file describes.

    Raises:
        msgspec.MsgspecError: It is not a profile, or contradicts itself.
    """
    profile = msgspec.json.decode(content, type=Profile)
    if profile.schema != PROFILE_SCHEMA:
        raise msgspec.ValidationError(
            f"the form has version {profile.schema}, and this harness reads {PROFILE_SCHEMA}"
        )
    features = {CORE, *(one.name for one in profile.features)}
    seen: set[tuple[str, str]] = set()
    for case in profile.cases:
        told = f"the case {case.name!r} with the scenario {case.scenario!r}"
        if case.key in seen:
            raise msgspec.ValidationError(f"{told} is there twice")
        seen.add(case.key)
        if case.feature not in features:
            raise msgspec.ValidationError(f"{told} has the feature {case.feature!r}, which is not described")
        if case.precision not in profile.rules.tolerances:
            raise msgspec.ValidationError(f"{told} has the precision {case.precision!r}, which has no limits")
        if case.scenario not in SCENARIOS:
            raise msgspec.ValidationError(f"{told}: this harness does not play it")
    return profile


def encode_profile(profile: Profile) -> bytes:
    """Return the content of a profile's file."""
    return msgspec.json.format(msgspec.json.encode(profile), indent=1) + b"\n"


def profile_schema() -> dict[str, Any]:
    """Return the JSON Schema: docs/reference/profile.schema.json."""
    return json_schema_of(Profile, "a conformance profile")
