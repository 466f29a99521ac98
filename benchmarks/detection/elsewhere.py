"""Other releases of onnxruntime, and other execution providers: healthy, as far as anybody knows."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.detection.subjects import Subject
from harness.core.values.value import NamedValues, tensor
from harness.golden.provenance import SESSION
from harness.plan.target import Runtime
from harness.runtimes.environments import build

LIMIT_S = 300.0
"""Seconds that one model may take, at most, on a simulator of a busy machine."""

UNUSABLE = 3
"""Exit code of ``stranger.py`` where the provider is not there."""

LEAST_SHARE = 0.5
"""Of a model's nodes that a provider has to compute itself, for the result to count as its own."""

CPU = "CPUExecutionProvider"
WEBGPU_ENV = {
    "VK_DRIVER_FILES": "/usr/lib/chromium/vk_swiftshader_icd.json",
    "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER": "1",
}


class Stranger(msgspec.Struct, frozen=True, kw_only=True):
    """A provider in a process of its own.

    Attributes:
        name: As in the tables.
        precision: What it computes in.
        request: What ``stranger.py`` takes.
        slow: A GPU or an accelerator made of a processor: asked about the first draw only.
        packages: Of its environment; empty for this interpreter's.
        env: Environment variables.
        quantizes: Whether it may be asked for quantized models: most fuse them into integer kernels, which
            are steps of the quantization away by choice.
    """

    name: str
    precision: str
    request: dict[str, Any]
    slow: bool = False
    packages: tuple[str, ...] = ()
    env: dict[str, str] = {}
    quantizes: bool = True


def _load_config(hint: str) -> str:
    """OpenVINO's own settings: without a hint it may compute a float32 model in bfloat16."""
    return json.dumps({"CPU": {"INFERENCE_PRECISION_HINT": hint}})


STRANGERS = (
    *(
        Stranger(
            name=f"onnxruntime {release}",
            precision="float32",
            packages=(f"onnxruntime=={release}",),
            request={"provider": CPU, "session": SESSION},
        )
        for release in ("1.20.1", "1.24.4")
    ),
    *(
        Stranger(
            name=f"OpenVINO 1.24.1, {hint}",
            precision=precision,
            packages=("onnxruntime-openvino==1.24.1",),
            request={
                "provider": "OpenVINOExecutionProvider",
                "options": {"device_type": "CPU", "load_config": _load_config(hint)},
            },
            quantizes=False,
        )
        for precision, hint in (("float32", "f32"), ("float16", "f16"), ("bfloat16", "bf16"))
    ),
    Stranger(
        name="WebGPU",
        precision="float32",
        slow=True,
        request={"provider": "WebGpuExecutionProvider", "plugin": "onnxruntime_ep_webgpu"},
        env=WEBGPU_ENV,
        quantizes=False,
    ),
    Stranger(
        name="QNN HTP",
        precision="float16",
        slow=True,
        request={
            "provider": "QNNExecutionProvider",
            "plugin": "onnxruntime_qnn",
            "options": {"backend_type": "htp"},
        },
        quantizes=False,
    ),
)
"""All of them."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a stranger makes of a model.

    Attributes:
        values: The outputs; None where there are none.
        why_not: Why.
    """

    values: NamedValues | None
    why_not: str = ""


def ask(stranger: Stranger, models: Sequence[Subject], folder: Path) -> Iterator[tuple[str, Answer]]:
    """Run models one after the other; what a process dies of costs the model that it held, and no other.

    Answers that are in the folder are not asked for again.

    Yields:
        The label of a model, and the answer.
    """
    home = folder / stranger.name.replace(" ", "-").replace(",", "")
    home.mkdir(exist_ok=True)
    asked = [
        one
        for one in models
        if (stranger.quantizes or not one.quantized) and not (stranger.slow and one.draw)
    ]
    jobs = {one.label: _job(one, home) for one in asked}
    left, why_not = [label for label, job in jobs.items() if not _is_done(job)], ""
    try:
        python = build(Runtime(packages=stranger.packages)) if stranger.packages else Path(sys.executable)
    except Exception as error:  # noqa: BLE001 - the text is the result
        python, left, why_not = None, [], str(error)
    while left and not why_not:
        request = home / "request.json"
        request.write_text(json.dumps({**stranger.request, "jobs": [jobs[name] for name in left]}))
        code, printed = _run(python, request, stranger.env, len(left))
        if code == UNUSABLE:
            why_not = printed
        undone = [name for name in left if not _is_done(jobs[name])]
        if undone:
            # The first of those that are left is the one that the process has died of.
            Path(jobs[undone[0]]["outputs"] + ".error").write_text(printed)
        left = undone[1:]
    for one in asked:
        yield one.label, _answer(one, jobs[one.label], why_not)


def _job(subject: Subject, home: Path) -> dict[str, str]:
    inputs = home / f"{subject.label}-inputs.npz"
    np.savez(inputs, allow_pickle=False, **subject.feeds)
    return {
        "model": str(subject.case.model_path),
        "inputs": str(inputs),
        "outputs": str(home / f"{subject.label}.npz"),
    }


def _run(python: Path | None, request: Path, env: dict[str, str], count: int) -> tuple[int | None, str]:
    script = Path(__file__).with_name("stranger.py")
    try:
        done = subprocess.run(
            [str(python), str(script), str(request)],
            env={**os.environ, **env},
            capture_output=True,
            timeout=LIMIT_S * count,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"not done after {LIMIT_S:.0f} s for each model"
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return done.returncode, f"exit code {done.returncode}: {said[-1] if said else ''}"


def _is_done(job: dict[str, str]) -> bool:
    return Path(job["outputs"]).exists() or Path(job["outputs"] + ".error").exists()


def _answer(subject: Subject, job: dict[str, str], why_not: str) -> Answer:
    outputs, error = Path(job["outputs"]), Path(job["outputs"] + ".error")
    if outputs.exists():
        with np.load(outputs) as found:
            if (share := float(found["share"])) < LEAST_SHARE:
                return Answer(values=None, why_not=f"it computes {share:.0%} of the nodes")
            names = subject.case.outputs
            return Answer(values=tuple((name, tensor(found[str(at)])) for at, name in enumerate(names)))
    return Answer(values=None, why_not=why_not or (error.read_text() if error.exists() else "no answer"))
