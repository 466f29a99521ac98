"""Arguments that several commands share, each with its text and the value that it makes."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from harness.cli.argument_values import days
from harness.cli.options import Argument, GivenArguments, Options

if TYPE_CHECKING:
    from harness.cli.selection import Selected
    from harness.cli.targets import ProviderRequest, Tested

MATRIX = "matrix file (TOML); `ep-harness init` writes one"
RUN = "run folder, or a folder of run folders, which count as one"
RUN_FOLDERS = "folder of successive runs, each a run folder or a folder of its shards"
ONE_OBJECT = "print one JSON object"
ONE_ARRAY = "print one JSON array"


def as_json(options: Options, text: str) -> Argument[bool]:
    """Declare ``--json``."""
    return options.flag("--json", text)


def age_days(options: Options) -> Argument[float]:
    """Declare how old the removed entries of a cache are, in days."""
    which = options.either()
    text = "remove what has been unused for this many days; default: 30"
    age = which.value("--older-than", "DAYS", text, days, 30.0)
    which.constant("--all", "remove everything", 0.0, 30.0, into=age)
    return age


def plugins(options: Options) -> Argument[list[str]]:
    """Declare ``--plugin`` where several may be tried."""
    text = "a plugin EP besides the installed ones: its package or library; may be repeated"
    return options.repeated("--plugin", "PACKAGE-OR-PATH", text, str)


def provider_options(options: Options) -> Argument[list[str]]:
    """Declare ``--option``."""
    text = "provider option, such as backend_type=htp; may be repeated"
    return options.repeated("--option", "K=V", text, str)


def env_options(options: Options) -> Argument[list[str]]:
    """Declare ``--env``."""
    text = "environment variable of the provider's process; may be repeated"
    return options.repeated("--env", "K=V", text, str)


def target_globs(options: Options) -> Argument[list[str]]:
    """Declare ``--target``."""
    return options.repeated("--target", "GLOB", "only these targets; may be repeated", str)


def model_globs(options: Options) -> Argument[list[str]]:
    """Declare ``--model``."""
    text = "only these models: suite/model, or the model alone; may be repeated"
    return options.repeated("--model", "GLOB", text, str)


def baselines(options: Options) -> Argument[list[Path]]:
    """Declare ``--baseline``."""
    text = "compare with the baseline that fits this machine; may be repeated"
    return options.repeated("--baseline", "FILE-OR-FOLDER", text, Path)


def with_report(options: Options) -> Argument[bool]:
    """Declare ``--no-report``: whether a report is written."""
    return options.flag("--no-report", "write no HTML report", given=False)


def native_stack(options: Options) -> Argument[bool]:
    """Declare ``--native-stack``."""
    return options.flag("--native-stack", "print the native stack of each crash into its output (Linux)")


def store_folder(options: Options) -> Argument[Path | None]:
    """Declare ``--store``."""
    return options.path(
        "--store", "DIR", "folder that keeps what was read of the runs; default: in the cache"
    )


class SelectionOptions:
    """``--target``, ``--model``, ``--shard`` and ``--durations``: the cells of a plan that are meant."""

    def __init__(self, options: Options) -> None:
        self.target = target_globs(options)
        self.model = model_globs(options)
        text = "only the I-th of N shares, for N machines; auto: as Slurm, Kubernetes or CI number them"
        self.shard = options.value("--shard", "I/N", text, str)
        text = "with --shard: an earlier run, to make shares equally long"
        self.durations = options.path("--durations", "RUN", text)

    def selected(self, given: GivenArguments, known: Argument[list[Path]] | None = None) -> "Selected":
        """Return what was given, with the baselines of ``--baseline``, as arguments of a function."""
        return {
            "target": given[self.target],
            "model": given[self.model],
            "shard": given[self.shard],
            "durations": given[self.durations],
            "baseline": () if known is None else given[known],
        }


class PlaceOptions:
    """``--browser``, ``--node`` and ``--software-gpu``; ``{}`` in a text stands for the place."""

    def __init__(self, options: Options, text: str, where: str = "") -> None:
        either = options.either()
        browser: Literal["browser", "node"] = "browser"
        node: Literal["browser", "node"] = "node"
        self.place = either.constant("--browser", text.format("onnxruntime-web in a browser"), browser, None)
        told = text.format("onnxruntime-node in Node.js")
        either.constant("--node", told, node, None, into=self.place)
        told = f"with --browser: compute WebGPU on the processor{where}"
        self.software_gpu = options.flag("--software-gpu", told)


class ProviderSettings:
    """``--plugin``, ``--option`` and ``--device``: how a provider is used."""

    def __init__(self, options: Options) -> None:
        text = "plugin EP: its package or library"
        self.plugin = options.value("--plugin", "PACKAGE-OR-PATH", text, str)
        self.options = provider_options(options)
        text = "only devices with this property, such as type=NPU; may be repeated"
        self.device = options.repeated("--device", "K=V", text, str)

    def request(
        self,
        given: GivenArguments,
        provider: str,
        models: "Tested | None" = None,
        *,
        env: Argument[list[str]] | None = None,
        place: PlaceOptions | None = None,
    ) -> "ProviderRequest":
        """Return a provider with the settings that were given, to be tested with models."""
        from harness.cli.targets import ProviderRequest, Tested

        return ProviderRequest(
            provider=provider,
            plugin=given[self.plugin],
            options=given[self.options],
            device=given[self.device],
            env=() if env is None else given[env],
            place=None if place is None else given[place.place],
            software_gpu=place is not None and given[place.software_gpu],
            models=models or Tested(),
        )
