"""Data sets of a model, side files, and files of tolerances."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

from benchmarks.mutation.attempt import Attempt
from benchmarks.mutation.changes import changed_bytes, changed_message
from benchmarks.mutation.commands import Commands
from benchmarks.mutation.kinds.a_run import INNOCENT, records_of_run

IN_A_RUN = 8
TEXT = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[2, n] x, float[2, n] z) => (float[2, n] y) { y = Add(x, z) }"""
SIDE = b"dimensions = { n = 2 }\ninputs.x = { shape = [2, 2], low = -1, high = 5 }\n"
ARRAY = np.arange(4, dtype=np.float32).reshape(2, 2)


def _saved(save: Any, *given: Any, **named: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *given, **named)
    return buffer.getvalue()


def _message(name: str) -> bytes:
    content: bytes = numpy_helper.from_array(ARRAY, name).SerializeToString()
    return content


FORMS: tuple[dict[str, bytes], ...] = (
    {"test_data_set_0/input_0.pb": _message("x"), "test_data_set_0/input_1.pb": _message("z")},
    {f"test_data_set_0/input_{at}.npy": _saved(np.save, ARRAY) for at in (0, 1)},
    {"test_data_set_0/inputs.npz": _saved(np.savez, x=ARRAY, z=ARRAY)},
    {"test_data_set_0/inputs.npz": _saved(np.savez_compressed, x=ARRAY, z=ARRAY)},
    {"model.onnx.toml": SIDE},
    {
        "test_data_set_0/input_0.pb": _message("x"),
        "test_data_set_0/input_1.pb": _message("z"),
        "test_data_set_0/output_0.pb": numpy_helper.from_array(ARRAY * 2, "y").SerializeToString(),
        "data.json": b'{"rtol": 0.001, "atol": 1e-5}',
    },
)


class DataSets:
    """Eight models in a run, each with a file of its data changed, beside one that nobody changed."""

    def __init__(self, home: Path, commands: Commands) -> None:
        self._cache = str(home / "cache")
        self._model = onnx.parser.parse_model(TEXT)

    def attempt(self, made: Attempt) -> None:
        """Change a file of each."""
        rng = made.rng
        for number in range(IN_A_RUN + 1):
            innocent = number == IN_A_RUN
            folder = made.folder / "models" / (INNOCENT if innocent else f"m{number}")
            files = dict(FORMS[0] if innocent else rng.choice(FORMS))
            if not innocent:
                name = rng.choice(sorted(files))
                files[name] = self._changed(name, files[name], rng)
            files["model.onnx"] = self._model.SerializeToString()
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
        records_of_run(made, EP_HARNESS_CACHE=self._cache)

    @staticmethod
    def _changed(name: str, content: bytes, rng: Any) -> bytes:
        if not name.endswith(".pb") or rng.random() < 0.4:
            return changed_bytes(content, rng)
        tensor = onnx.TensorProto.FromString(content)
        changed_message(tensor, rng)
        changed: bytes = tensor.SerializeToString()
        return changed
