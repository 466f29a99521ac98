"""A browser or Node.js as the place of `ep-harness check`: names of providers, packages, missing programs."""

import shutil
from collections.abc import Callable, Iterator
from typing import Literal

from harness.cli.matrix_text import toml
from harness.core.text.errors import UsageError, valid_names
from harness.runtimes.installer import InstallError
from harness.runtimes.javascript import BROWSERS, find_browser, find_node
from harness.runtimes.npm import Npm

WebRuntime = Literal["browser", "node"]

PACKAGES: dict[WebRuntime, str] = {"browser": "onnxruntime-web@1.30.0", "node": "onnxruntime-node@1.30.0"}
"""The packages to install, in the release with which these pages and matrices were tried."""

PROVIDERS: dict[WebRuntime, dict[str, str]] = {
    "browser": {
        "wasm": "CPUExecutionProvider",
        "webgpu": "WebGpuExecutionProvider",
        "jsep": "JsExecutionProvider",
        "webnn": "WebNNExecutionProvider",
    },
    "node": {
        "cpu": "CPUExecutionProvider",
        "webgpu": "WebGpuExecutionProvider",
        "cuda": "CUDAExecutionProvider",
        "tensorrt": "TensorrtExecutionProvider",
        "dml": "DmlExecutionProvider",
        "coreml": "CoreMLExecutionProvider",
    },
}
"""Names in the JavaScript API -> those of onnxruntime."""

SOFTWARE_GPU = (
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan",
    "--enable-unsafe-swiftshader",
)
"""Switches with which Chromium computes WebGPU on the processor."""

_SLOW_S = 300
"""Limit of a run with shaders on the processor; 60 s by default."""

_DEBIAN = "on Debian: apt-get install nodejs npm chromium"


def provider_named(name: str, place: WebRuntime) -> str:
    """Return onnxruntime's name of a provider, from it or from that in JavaScript, such as ``webgpu``."""
    known = PROVIDERS[place]
    if name in known.values():
        return name
    if name.lower() in known:
        return known[name.lower()]
    raise UsageError.at("PROVIDER", f"{PACKAGES[place]} has no provider {name!r}", valid_names(name, known))


def browser_here() -> str:
    """Return the name of the first browser that is installed.

    Raises:
        InstallError: There is none.
    """
    for name in BROWSERS:
        try:
            find_browser(name)
        except InstallError:
            continue
        return name
    programs = ", ".join(program for names in BROWSERS.values() for program in names)
    raise InstallError(f"there is no browser; looked for {programs}")


def require(place: WebRuntime) -> None:
    """Refuse to begin if a program is missing."""
    needed: list[Callable[[], object]] = [find_node, Npm().program]
    if place == "browser":
        needed.append(browser_here)
    problems = []
    for find in needed:
        try:
            find()
        except InstallError as error:
            problems.append(str(error))
    if problems:
        raise UsageError.at(f"--{place}", "; ".join(problems), _DEBIAN if shutil.which("apt-get") else "")


def runtime_lines(place: WebRuntime, *, software_gpu: bool) -> Iterator[str]:
    """Yield the lines of a target that set where it runs.

    Raises:
        InstallError: There is no browser.
    """
    parts = [f"browser = {toml(browser_here())}" if place == "browser" else 'node = "node"']
    parts.append(f"packages = {toml([PACKAGES[place]])}")
    if software_gpu:
        parts.append(f"flags = {toml(SOFTWARE_GPU)}")
    yield f"runtime  = {{ {', '.join(parts)} }}"
    if software_gpu:
        yield f"timeouts_s = {{ run = {_SLOW_S} }}"
