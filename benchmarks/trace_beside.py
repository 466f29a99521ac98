"""What Polygraphy, and a script of cosines by layer, tell of the plants of `trace_faults.py`.

    python benchmarks/trace_faults.py 44 | tee LOG
    python benchmarks/trace_beside.py LOG

It takes each plant of the log: a fault of the crooked EP at one node of a zoo model. All tensors become
outputs, as `polygraphy run --onnx-outputs mark all` makes them, and are compared with those of the CPU EP.
Polygraphy's command registers no plugin EP, so its runner gets a session. A tool has named the node if what
it lists begins with that node's output, in the order of the graph. What is listed beside it is inherited.
Needs `pip install polygraphy` (0.53).
"""

import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from polygraphy.backend.onnxrt import OnnxrtRunner  # type: ignore[import-not-found]
from polygraphy.comparator import Comparator, SimpleCompareFunc  # type: ignore[import-not-found]
from polygraphy.logger import G_LOGGER  # type: ignore[import-not-found]

from harness.annex.trace.what_to_trace import model_to_trace
from harness.annex.triage.net import load
from tests.crooked_ep.build import build

LEAST_COSINE = 0.999
"""Cosine below which scripts of users call a layer different."""

PLANT = re.compile(
    r"^(?:named|MISSED) +(?P<model>\S+) (?P<fault>\w+) at \w+ (?P<node>.+): \d+ s; ", re.MULTILINE
)
Tensors = Mapping[str, np.ndarray]


def session(model: bytes, options: dict[str, str] | None) -> ort.InferenceSession:
    """Return a session of the CPU EP, or of the crooked EP with options; without fusions."""
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.log_severity_level = 3
    if options is None:
        return ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
    devices = [one for one in ort.get_ep_devices() if one.ep_name.startswith("Crooked")]
    settings.add_provider_for_devices(devices[:1], options)
    return ort.InferenceSession(model, settings)


def with_all_outputs(model: onnx.ModelProto) -> bytes:
    """Return a model whose tensors are all outputs."""
    known = {one.name for one in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in known:
                model.graph.output.append(onnx.ValueInfoProto(name=name))
    return model.SerializeToString()


def by_cosine(golden: Tensors, found: Tensors, order: Sequence[str]) -> list[str]:
    """Return the outputs whose direction differs, or is not finite, in the order of the graph."""
    return [name for name in order if not cosine(golden[name], found[name]) >= LEAST_COSINE]


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    first, second = (np.asarray(each, np.float64).ravel() for each in (one, other))
    norm = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / norm if norm else float(np.array_equal(first, second))


def main(log: Path) -> int:
    G_LOGGER.module_severity = G_LOGGER.CRITICAL
    ort.register_execution_provider_library(
        "crooked", str(build(Path(tempfile.gettempdir()) / "crooked_beside"))
    )
    counts = {tool: {"named": 0, "listed": 0, "nothing": 0} for tool in ("polygraphy", "cosine")}
    tried = 0
    plants = PLANT.findall(log.read_text("utf-8"))
    for model, fault, node in plants:
        subject, _ = model_to_trace(f"zoo/{model}", None, lambda _: None)
        proto = with_all_outputs(subject.proto())
        feed = {name: value.array for name, value in subject.inputs}
        if any(value.dtype == object for value in feed.values()):
            print(f"left out: {model}: Polygraphy takes no texts")
            continue
        tried += 1
        nodes = load(subject).nodes
        order = [name for one in nodes for name in one.outputs if name]
        (planted,) = (one.outputs[0] for one in nodes if one.name == node)
        runs = Comparator.run(
            [
                OnnxrtRunner(lambda model=proto: session(model, None), name="cpu"),
                OnnxrtRunner(
                    lambda model=proto, fault=fault, node=node: session(
                        model, {"fault": fault, "only": node}
                    ),
                    name="crooked",
                ),
            ],
            data_loader=[feed],
        )
        golden, found = (dict(one[0]) for _, one in runs)
        (compared,) = Comparator.compare_accuracy(runs, compare_func=SimpleCompareFunc())
        (matches,) = next(iter(compared.values()))
        told = {
            "polygraphy": [name for name in order if name in matches and not matches[name]],
            "cosine": by_cosine(golden, found, order),
        }
        for tool, listed in told.items():
            counts[tool]["named"] += listed[:1] == [planted]
            counts[tool]["listed"] += len(listed)
            counts[tool]["nothing"] += not listed
            others = [name for name in listed if name != planted]
            print(
                f"{tool:<11}{model} {fault} at {node}: first {listed[:1]}, {len(others)} others", flush=True
            )
    for tool, count in counts.items():
        print(
            f"| {tool} | first is the node in {count['named']} of {tried} | "
            f"nothing listed in {count['nothing']} | "
            f"tensors listed on average {count['listed'] / max(tried, 1):.0f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
