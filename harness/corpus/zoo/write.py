"""One model of the zoo, built and written in ONNX's usual layout with the data that it is fed."""

from pathlib import Path

from harness.core.value import tensor
from harness.corpus.protos import tensor_proto
from harness.corpus.zoo.graph import Graph
from harness.corpus.zoo.roster import ZooModel, zoo_models


def write_zoo_model(name: str, folder: Path) -> None:
    """Write ``model.onnx`` and ``test_data_set_0/input_N.pb`` into an empty folder.

    There is no expected data: goldens are computed, as for a user's own model.
    """
    g = build(zoo_models()[name])
    (folder / "model.onnx").write_bytes(g.model(name).SerializeToString())
    data_set = folder / "test_data_set_0"
    data_set.mkdir()
    for index, (port, data) in enumerate(g.inputs.items()):
        proto = tensor_proto(tensor(data))
        proto.name = port
        (data_set / f"input_{index}.pb").write_bytes(proto.SerializeToString())


def build(model: ZooModel) -> Graph:
    """The finished graph, with its inputs."""
    g = Graph(
        # Without the opset: both exports hold the same weights and must give the same answers.
        seed=f"{model.architecture.name}-{model.size}",
        opset=model.opset,
        ml_opset=model.ml_opset,
        fixed=model.fixed,
    )
    model.architecture.sizes[model.size](g)
    return g
