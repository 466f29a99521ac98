"""Models: bytes of their files, and fields of their messages."""

from pathlib import Path

import onnx
import onnx.parser

from benchmarks.mutation.attempt import Attempt
from benchmarks.mutation.changes import changed_bytes, changed_message
from benchmarks.mutation.commands import Commands
from benchmarks.mutation.kinds.a_run import records_of_run, write_innocent
from benchmarks.odd_models.making import models

IN_A_RUN = 8
ODD = 250
"""About one for each operator."""
TEXTS = (
    """<ir_version: 9, opset_import: ["" : 17, "mine" : 1]>
    agraph (float[batch, 4] x) => (float[batch, 4] y) { a = mine.Twice(x) b = mine.Twice(a) y = Relu(b) }
    <opset_import: ["" : 17], domain: "mine"> Twice (a) => (b) { c = Add(a, a) b = Neg(c) }""",
    """<ir_version: 9, opset_import: ["" : 17]>
    agraph (float[2] x, bool c) => (float[2] y)
    { y = If(c) <then_branch = g1 () => (float[2] t) { t = Neg(x) },
                 else_branch = g2 () => (float[2] e) { e = Abs(x) }> }""",
    """<ir_version: 9, opset_import: ["" : 17]>
    agraph (float[4, 8] x) => (float[4, 2] v, int64[4, 2] k, uint8[4, 8] q, seq(float[2, 8]) s)
    <int64[1] two = {2}, float scale = {0.1}, uint8 zero = {100}, int64 rows = {2}>
    { v, k = TopK(x, two) q = QuantizeLinear(x, scale, zero) s = SplitToSequence <axis = 0> (x, rows) }""",
    """<ir_version: 9, opset_import: ["" : 17]>
    agraph (float[2, n] x) => (float[m] y) <int64[1] shape = {-1}, int64[2] large = {2, 4}, float one = {1}>
    { r = Reshape(x, shape) f = Expand(one, large) g = Reshape(f, shape) y = Add(r, g) }""",
)


class Models:
    """Eight in a run, beside one that nobody changed."""

    def __init__(self, home: Path, commands: Commands) -> None:
        self._cache = str(home / "cache")
        self._odd = [model for _, model in models(ODD, seed=7)]
        self._texts = [onnx.parser.parse_model(text) for text in TEXTS]

    def attempt(self, made: Attempt) -> None:
        """Change models of four kinds, and some of the odd ones."""
        rng, folder = made.rng, made.folder / "models"
        write_innocent(folder)
        for number in range(IN_A_RUN):
            model = onnx.ModelProto()
            if rng.random() < 0.5:
                model.CopyFrom(rng.choice(self._texts))
            else:
                model.CopyFrom(rng.choice(self._odd))
            if rng.random() < 0.8:
                changed_message(model, rng)
            content = model.SerializeToString()
            if rng.random() < 0.3:
                content = changed_bytes(content, rng)
            (folder / f"m{number}.onnx").write_bytes(content)
        records_of_run(made, EP_HARNESS_CACHE=self._cache)
