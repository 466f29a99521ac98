"""An onnxruntime of a few lines that answers at once, or dies when told to, and the model it computes."""

from pathlib import Path

FAKE = Path(__file__).resolve().parents[1] / "tests" / "engine" / "fake_onnxruntime"
MODEL = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4] x) => (float[4] y, int32[4] k, float[4] z) { y = Relu(x) k = Cast<to=6>(x) z = Neg(x) }"""
