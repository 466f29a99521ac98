"""Compare a run of the harness in a browser with an independent page: ``page.html``.

The page has its own loop, comparison and reading of the log. This script serves it the cases from the package
``onnx``, starts Chromium without a driver, and counts where the page and the records of a run disagree:

    python benchmarks/web_reference/reference.py RUN --target browser-wasm --dist .../onnxruntime-web/dist
"""

import argparse
import collections
import functools
import http.server
import json
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.test.case.node import collect_testcases

PROVIDERS = {
    "browser-wasm": ("wasm", "ort.wasm.min.mjs", {"CPUExecutionProvider"}),
    "browser-webgpu": ("webgpu", "ort.webgpu.min.mjs", {"WebGpuExecutionProvider"}),
    "browser-webgpu-jsep": ("webgpu", "ort.min.mjs", {"JsExecutionProvider"}),
}
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-features=Vulkan",
    "--enable-unsafe-swiftshader",
)
PACKED = {"int4", "uint4"}
RANDOM = "test_training_dropout"
"""Beginning of the names of cases that draw numbers: the page compares values only."""

RIGHT = {"pass", "pass_partial", "fallback", "folded"}
WRONG = {"mismatch", "nan_mismatch", "shape_mismatch", "dtype_mismatch", "nondeterministic"}


def tensor(value: Any) -> dict[str, Any]:
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        raise TypeError(f"the page takes tensors only: {type(value).__name__}")
    if value.dtype.kind in "OSU":
        texts = [each.decode() if isinstance(each, bytes) else str(each) for each in value.ravel()]
        return {"dtype": "string", "shape": value.shape, "texts": texts}
    data = np.ascontiguousarray(value).tobytes()
    if value.dtype.name in PACKED:  # two elements in a byte, the first in the low bits
        codes = [each & 15 for each in data] + [0] * (len(data) % 2)
        data = bytes(low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True))
    return {"dtype": value.dtype.name, "shape": value.shape, "hex": data.hex()}


@functools.cache
def cases() -> dict[str, Any]:
    return {case.name: case for case in collect_testcases(None)}


def tolerance(outputs: Any) -> dict[str, float]:
    """Return a tolerance for all outputs: coarse where one has 11 bits, or was written with four decimals."""
    floats = [value for value in outputs if isinstance(value, np.ndarray) and value.dtype.kind == "f"]
    if any(value.dtype == np.float16 for value in floats):
        return {"rtol": 1e-2, "atol": 1e-2}
    is_rounded = any(np.array_equal(value, value.round(4), equal_nan=True) for value in floats)
    return {"rtol": 1e-4, "atol": 6e-5 if is_rounded else 1e-5}  # half of the last decimal, and the rest


def case_json(name: str) -> dict[str, Any]:
    case = cases()[name]
    inputs, outputs = case.data_sets[0]
    names = [each.name for each in case.model.graph.input]
    try:
        return {
            "model": case.model.SerializeToString().hex(),
            "inputs": {key: tensor(value) for key, value in zip(names, inputs, strict=True)},
            "outputs": [tensor(value) for value in outputs],
            **tolerance(outputs),
        }
    except (TypeError, ValueError) as error:
        return {"trouble": str(error)}


class Handler(http.server.BaseHTTPRequestHandler):
    plan: dict[str, Any]
    dist: Path
    results: list[dict[str, Any]]
    ended: threading.Event

    def do_GET(self) -> None:
        path = self.path.strip("/")
        if path.startswith("dist/"):
            file = self.dist / Path(path).name
            kind = "application/wasm" if file.suffix == ".wasm" else "text/javascript"
            return self.answer(file.read_bytes(), kind)
        if path == "plan":
            return self.answer(json.dumps(self.plan).encode(), "application/json")
        if path.startswith("case/"):
            return self.answer(json.dumps(case_json(path.removeprefix("case/"))).encode(), "application/json")
        return self.answer(Path(__file__).with_name("page.html").read_bytes(), "text/html")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/end":
            self.ended.set()
        else:
            self.results.append(json.loads(body))
        self.answer(b"{}", "application/json")

    def answer(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (("Opener", "same-origin"), ("Embedder", "require-corp")):
            self.send_header(f"Cross-Origin-{name}-Policy", value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


def outcomes(target: str, dist: Path, chromium: str, limit_s: float) -> dict[str, dict[str, Any]]:
    """Return what the page found, by name of the case."""
    provider, bundle, _ = PROVIDERS[target]
    Handler.plan = {"provider": provider, "bundle": bundle, "names": sorted(cases())}
    Handler.dist, Handler.results, Handler.ended = dist, [], threading.Event()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        address = f"http://127.0.0.1:{server.server_port}/"
        browser = subprocess.Popen(
            [chromium, *FLAGS, f"--user-data-dir={profile}", address],
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        Handler.ended.wait(limit_s)
        browser.terminate()
        browser.wait()
    return {each["name"]: each for each in Handler.results}


def of_record(record: dict[str, Any]) -> tuple[str, tuple[bool, bool] | None]:
    """Return outcome and placement of a record in the page's terms."""
    verdict = record["verdict"]
    outcome = "right" if verdict in RIGHT else "wrong" if verdict in WRONG else "error"
    placed = record.get("placement")
    return outcome, placed and (placed["ep_nodes"] > 0, placed["cpu_nodes"] > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--target", choices=PROVIDERS, required=True)
    parser.add_argument("--dist", type=Path, required=True, help="folder dist of the package onnxruntime-web")
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds for the page")
    options = parser.parse_args()
    own = PROVIDERS[options.target][2]
    found = outcomes(options.target, options.dist, options.chromium, options.limit)
    lines = (options.run / "records.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    counts: collections.Counter[str] = collections.Counter()
    for record in (each for each in records if each.get("target") == options.target):
        page = found.get(record["model"])
        if page is None:
            counts["not on the page"] += 1
            continue
        if record["verdict"] == "reference_disputed" or record["model"].startswith(RANDOM):
            counts["disputed or random"] += 1
            continue
        outcome, placed = of_record(record)
        sides = (bool(own & set(page["placement"])), bool(set(page["placement"]) - own))
        same = outcome == page["outcome"] and (placed is None or outcome == "error" or placed == sides)
        counts["agree" if same else "disagree"] += 1
        if not same:
            print(f"{record['model']}: {record['verdict']} {placed}, page {page['outcome']} {sides}")
            print(f"    {record.get('reason', '')[:150]} | {page['message'][:150]}")
    total = counts["agree"] + counts["disagree"]
    print(dict(counts), f"onnx {onnx.__version__}, {counts['agree'] / max(total, 1):.2%} of {total} agree")


if __name__ == "__main__":
    main()
