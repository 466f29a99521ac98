from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper


def save_model(path: Path, op_type: str) -> None:
    """A model of one unary float32 operator over [batch, 3]."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], "g", value[:1], value[1:])
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


Project = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Make a folder of three models and a matrix over it; returns the matrix's path."""

    def make(extra: str = "", target: str = "") -> Path:
        for op_type in ("Abs", "Neg", "Relu"):
            save_model(tmp_path / "models" / f"{op_type.lower()}.onnx", op_type)
        matrix = tmp_path / "m.toml"
        matrix.write_text(
            'schema = 1\n[models]\nfolders = ["models"]\n'
            f'[[target]]\nname = "cpu"\nprovider = "CPUExecutionProvider"\n{target}\n{extra}\n',
            encoding="utf-8",
        )
        return matrix

    return make
