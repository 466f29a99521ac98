"""Make the models, run them, and count what must not be there."""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import onnx

from benchmarks.odd_models.making import models
from benchmarks.processes import verdict
from harness.core.records.verdict import Family
from harness.report.runs.read import read_run

MATRIX = """schema = 1
[models]
folders = ["models"]
[axes]
scenario = {scenarios}
precision = {precisions}
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
timeouts_s = {{ run = 20 }}
"""
OTHERS = """[[target]]
name = "webgpu"
provider = "WebGpuExecutionProvider"
plugin = "onnxruntime_ep_webgpu"


[target.env]
VK_DRIVER_FILES = "/usr/lib/chromium/vk_swiftshader_icd.json"
ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER = "1"
"""


def main() -> int:
    """Exit code 1 where a model cost more than itself."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as temporary:
        home = arguments.folder or Path(temporary)
        (home / "models").mkdir(parents=True, exist_ok=True)
        for name, model in models(arguments.count, arguments.seed):
            onnx.save(model, home / "models" / f"{name}.onnx")
        matrix = MATRIX.format(scenarios=arguments.scenario, precisions=arguments.precision)
        (home / "m.toml").write_text(matrix + (OTHERS if arguments.webgpu else ""), encoding="utf-8")
        started = time.monotonic()
        command = [sys.executable, "-m", "harness", "run", str(home / "m.toml"), "--out", str(home / "run")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        took = time.monotonic() - started
        return 0 if _is_good(home / "run", done, took) else 1


def _is_good(run: Path, done: "subprocess.CompletedProcess[str]", took_s: float) -> bool:
    data = read_run(run)
    verdicts = Counter(record.verdict for record in data.records)
    planned = data.info.cells
    print(
        f"| {planned:,} cells | {took_s:.0f} s |",
        ", ".join(f"{n} {v}" for v, n in verdicts.most_common()),
        "|",
    )
    lost = [record for record in data.records if record.verdict.family is Family.MISSING]
    for reason, count in Counter(record.reason for record in lost).most_common(40):
        print(f"{count:4} {reason}")
    without = planned - len(data.records)
    traceback = "Traceback" in done.stdout + done.stderr
    if without or traceback:
        print(f"{without} cells without a record, exit code {done.returncode}")
        print(done.stdout[-500:], done.stderr[-3000:], sep="\n")
    met = verdict(
        f"of {planned:,} odd cells, those without a record or with an error of ours", without + len(lost), 0
    )
    return met and not traceback


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.odd_models", description=__doc__)
    parser.add_argument("--count", type=int, default=2400, help="models")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="keeps the models and the run")
    parser.add_argument("--scenario", nargs="*", default=["plain", "dynamic_shapes", "zero_size"])
    parser.add_argument("--precision", nargs="*", default=["fp32"])
    parser.add_argument("--webgpu", action="store_true", help="run them on WebGPU, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
