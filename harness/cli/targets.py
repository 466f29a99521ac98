"""The targets of a command: those of a matrix file, one provider, or all providers that work here."""

import shutil
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from harness.cli.init import examine_here, plugins_from_here
from harness.cli.matrix_text import matrix_of, short_name, target_lines, toml
from harness.cli.output import notify
from harness.cli.web import WebRuntime, provider_named, require, runtime_lines
from harness.core.records.scenario import GENERATE, PACKAGE_SCENARIO, PLAIN, SCENARIOS
from harness.core.text.errors import Problem, UsageError
from harness.plan.matrix import Matrix, matrix_from, read_matrix
from harness.plan.target import is_path

_SUITE = "onnx-node"

THIS_MACHINE = "this machine"
"""Replaces the matrix file's path if the targets are the providers found here."""

_ARGUMENTS = {
    "target[0].provider": "PROVIDER",
    "target[0].plugin": "--plugin",
    "target[0].options.": "--option ",
    "target[0].device.": "--device ",
    "target[0].env": "--env",
    "models.suites": "--suite",
    "models.folders": "FOLDER",
}
"""Key in the matrix -> the argument from which it was made."""


_USUAL = """\
[models]
# Operator tests, what their data never show, forms of every operator, and whole models.
suites  = ["onnx-node", "corners", "fuzz:0:1500", "zoo"]
exclude = ["zoo/*-base-*", "zoo/*-op22", "zoo/*-op23"]

# Whole models are also opened, run and closed often, which shows leaks and crashes at the end of a session.
[axes]
scenario = ["plain", "sessions"]

[scenarios]
sessions = { count = 30 }

[[exclude]]
model    = ["onnx-node/*", "corners/*", "fuzz-0/*"]
scenario = "sessions"
"""
"""The default tests of a provider; each part finds faults that the others miss."""

_API = """\
[models]
# Eight architectures with shapes that are known, seven of them also with shapes that are not, and decoders.
suites  = ["zoo", "generate"]
exclude = [
    "zoo/*-base-*", "zoo/*-op2?", "zoo/diffusion-*", "zoo/efficientnet-*", "zoo/gpt-*", "zoo/mobilenet-*",
    "zoo/resnet-*", "zoo/speech-lstm-*", "zoo/unet-*", "zoo/vit-*",
    "generate/*[!4]", "generate/*-int4", "generate/mha-*", "generate/onnx*",
]

[axes]
scenario = {scenarios}

[scenarios]
concurrent = {{ threads = 4, runs = 3 }}
sessions   = {{ count = 6 }}

# Each scenario runs a session often enough in its own way.
[[repeat]]
runs     = 2
sessions = 1

[[exclude]]
model    = ["zoo/*-fixed-*", "zoo/mnist-*"]
scenario = {shapes}

[[exclude]]
model    = "zoo/*-small-op17"
scenario = {others}

# A library is registered and unregistered in the same way whatever is run.
[[exclude]]
model    = "zoo/[!m]*"
scenario = "lifecycle"

[[exclude]]
model    = "generate/*"
scenario = {no_text}

[[exclude]]
model    = "zoo/*"
scenario = "generate"

[[tolerance]]
scenario = "generate"
noise    = {{}}
"""
"""The tests of onnxruntime's API: every scenario, on the models to which it applies."""

_SHAPES = ("dynamic_shapes", "zero_size", "free_dimensions")


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """What `check` tests, from the command line, and how.

    Attributes:
        usual: Whether these are the default tests of a provider; the other attributes then do not matter.
        api: The same for the tests of onnxruntime's API.
        suites: Names of suites; the operator suite if there is no folder either.
        decoders: Globs on the models that generate text; they are not run plainly.
        others: Globs on all other models.
    """

    usual: bool = False
    api: bool = False
    suites: Sequence[str] = ()
    folders: Sequence[str] = ()
    decoders: Sequence[str] = ()
    others: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        """Return the lines of a matrix file, without its targets."""
        yield "# Written by `ep-harness check`. Every key: docs/reference/matrix.md."
        yield "schema = 1"
        yield ""
        if self.usual:
            yield _USUAL
            return
        if self.api:
            names = [name for name in SCENARIOS if name != PACKAGE_SCENARIO]
            yield _API.format(
                scenarios=toml(names),
                shapes=toml(_SHAPES),
                others=toml(name for name in names if name not in (PLAIN, "batch_slots", *_SHAPES)),
                no_text=toml(name for name in names if name != GENERATE),
            )
            return
        yield "[models]"
        if self.suites or not self.folders:
            yield f"suites = {toml(self.suites or [_SUITE])}"
        if self.folders:
            # A folder is relative to the working folder, not to the matrix file.
            yield f"folders = {toml(str(Path(folder).absolute()) for folder in self.folders)}"
        yield ""
        if not self.decoders:
            return
        yield "[axes]"
        yield f"scenario = {toml(['plain', GENERATE] if self.others else [GENERATE])}"
        yield ""
        for scenario, models in ((GENERATE, self.others), ("plain", self.decoders)) if self.others else ():
            yield "[[exclude]]"
            yield f"model    = {toml(models)}"
            yield f"scenario = {toml(scenario)}"
            yield ""
        yield "# In units of each model's own rounding noise."
        yield "[[tolerance]]"
        yield f"scenario = {toml(GENERATE)}"
        yield "noise    = {}"
        yield ""


class ProviderRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A provider and its use, from the command line.

    Attributes:
        provider: Its exact name. ``wanted_matrix`` also takes a matrix file (``*.toml``), or an empty text
            for all providers that work here.
        plugin: A package, or a library's path; None for a provider of the build.
        options: ``KEY=VALUE`` each.
        device: ``KEY=VALUE`` each.
        env: Environment variables of its process, ``KEY=VALUE`` each.
        place: A browser or Node.js, in place of a Python.
        software_gpu: Whether the browser computes WebGPU on the processor.
        agent: A program that is an agent, in place of a Python; None for none.
    """

    provider: str
    plugin: str | None = None
    options: Sequence[str] = ()
    device: Sequence[str] = ()
    env: Sequence[str] = ()
    place: WebRuntime | None = None
    software_gpu: bool = False
    agent: str | None = None
    models: Tested = Tested()

    @property
    def name(self) -> str:
        """Name of the only target."""
        name = short_name(self.provider)
        place = self.place or (self.agent and Path(self.agent).stem)
        return f"{place}-{name}" if place else name

    def matrix_text(self) -> str:
        """Return a matrix file with the provider as its only target."""
        return "\n".join(self._lines())

    def refuse_settings(self, hint: str) -> None:
        """Refuse settings of a provider if none is named."""
        if self.place or self.agent:
            what = f"--{self.place or 'agent'} needs a provider, and none is named"
            raise UsageError.at(self.provider or "arguments", what, hint)
        if self.plugin or self.options or self.device or self.env:
            what = "--plugin, --option, --device and --env need a provider, and none is named"
            raise UsageError.at(self.provider or "arguments", what, hint)

    def _lines(self) -> Iterator[str]:
        yield from self.models.lines()
        # A library's path is relative to the working folder, not to the matrix file.
        plugin = self.plugin and plugins_from_here([self.plugin])[0]
        device, options = pairs_of("--device", self.device), pairs_of("--option", self.options)
        env = pairs_of("--env", self.env)
        yield from target_lines(
            self.name, self.provider, plugin=plugin, device=device, options=options, env=env
        )
        if self.agent is not None:
            # Like a library: relative to the working folder.
            program = str(Path(self.agent).absolute()) if is_path(self.agent) else self.agent
            yield f"runtime  = {{ agent = {toml([program])} }}"
        if self.place:
            yield from runtime_lines(self.place, software_gpu=self.software_gpu)
        yield "required = true"
        yield ""


def in_its_place(request: ProviderRequest) -> ProviderRequest:
    """Return a request with onnxruntime's name of the provider if it is for a browser or Node.js.

    Else unchanged.
    """
    if request.software_gpu and request.place != "browser":
        raise UsageError.at("--software-gpu", "it is a setting of --browser")
    if request.agent is not None:
        if request.place:
            raise UsageError.at("--agent", f"it excludes --{request.place}", "keep one of them")
        if shutil.which(request.agent) is None:
            there = Path(request.agent).is_file()
            what = f"{request.agent} is not executable" if there else f"there is no program {request.agent}"
            raise UsageError.at("--agent", what, f"chmod +x {request.agent}" if there else "")
    if not request.place or not request.provider:
        return request
    for flag, given in (("--plugin", request.plugin), ("--device", request.device)):
        if given:
            raise UsageError.at(flag, f"there is no such thing with --{request.place}")
    provider = provider_named(request.provider, request.place)
    require(request.place)
    return msgspec.structs.replace(request, provider=provider)


def wanted_matrix(request: ProviderRequest) -> Matrix:
    """Return a matrix with the requested targets, each with all of its axes; its models do not matter.

    Tolerances do matter, and a matrix file has its own.
    """
    if request.provider and not request.provider.endswith(".toml"):
        file = Path(f"{request.name}.toml")
        with naming_arguments(file):
            return matrix_from(tomllib.loads(request.matrix_text()), file)
    request.refuse_settings("name PROVIDER after the model")
    if request.provider:
        matrix = read_matrix(Path(request.provider))
        targets = tuple(msgspec.structs.replace(one, axes=matrix.axes | one.axes) for one in matrix.targets)
        return msgspec.structs.replace(matrix, axes={}, targets=targets)
    notify("looking for providers that work here; name a provider or a matrix file to skip this ...")
    text = "\n".join(matrix_of(examine_here(THIS_MACHINE), "\n".join(request.models.lines())))
    return matrix_from(tomllib.loads(text), Path(THIS_MACHINE))


@contextmanager
def naming_arguments(file: Path) -> Iterator[None]:
    """Turn errors in a generated matrix into errors in the arguments from which it was made."""
    try:
        yield
    except UsageError as error:
        raise UsageError(*(_as_argument(problem, file) for problem in error.problems)) from error


def _as_argument(problem: Problem, file: Path) -> Problem:
    where = problem.where.removeprefix(f"{file}: ")
    for key, argument in _ARGUMENTS.items():
        if where.startswith(key):
            where = argument + where.removeprefix(key)
            break
    return msgspec.structs.replace(problem, where=where)


def pairs_of(flag: str, given: Sequence[str]) -> dict[str, str]:
    """Return ``KEY=VALUE`` arguments as a table."""
    pairs: dict[str, str] = {}
    for one in given:
        key, separator, value = one.partition("=")
        if not separator or not key:
            raise UsageError.at(flag, f"expected KEY=VALUE, got {one!r}")
        if key in pairs:
            raise UsageError.at(f"{flag} {key}", "given twice", "keep one value")
        pairs[key] = value
    return pairs
