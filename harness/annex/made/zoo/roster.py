"""The zoo's models by name. Listing them builds nothing and imports no onnx."""

from pathlib import Path

import msgspec

from harness.annex.made.zoo.bert import BERT
from harness.annex.made.zoo.boosted_trees import TREES
from harness.annex.made.zoo.detector import DETECTOR
from harness.annex.made.zoo.diffusion import DIFFUSION
from harness.annex.made.zoo.efficientnet import EFFICIENTNET
from harness.annex.made.zoo.gpt import GPT
from harness.annex.made.zoo.graph_builder import Architecture, GraphBuilder
from harness.annex.made.zoo.int4 import INT4
from harness.annex.made.zoo.int8 import INT8
from harness.annex.made.zoo.llama import LLAMA
from harness.annex.made.zoo.mnist import MNIST
from harness.annex.made.zoo.mobilenet import MOBILENET
from harness.annex.made.zoo.resnet import RESNET
from harness.annex.made.zoo.speech import SPEECH_GRU, SPEECH_LSTM
from harness.annex.made.zoo.text_classifier import TEXT
from harness.annex.made.zoo.unet import UNET
from harness.annex.made.zoo.vit import VIT
from harness.corpus.beside.value_file import write_model_folder

# fmt: off
ARCHITECTURES: tuple[Architecture, ...] = (
    MNIST, RESNET, MOBILENET, EFFICIENTNET, UNET, VIT, BERT, GPT, LLAMA, SPEECH_LSTM, SPEECH_GRU, DETECTOR,
    DIFFUSION, INT8, INT4, TREES, TEXT,
)
# fmt: on
"""All architectures, in the order of the reference."""


class ZooModel(msgspec.Struct, frozen=True, kw_only=True):
    """One export of an architecture: one of its sizes, at one of its opsets.

    ``fixed``: symbolic dimensions are declared by their sizes, as many accelerators require.
    """

    architecture: Architecture
    size: str
    opset: int
    fixed: bool = False

    @property
    def name(self) -> str:
        """The name, such as ``resnet-small-op17`` or ``resnet-small-fixed-op17``."""
        parts = [self.architecture.name, self.size, *["fixed"] * self.fixed, f"op{self.opset}"]
        return "-".join(parts)

    @property
    def ml_opset(self) -> int | None:
        """Version of the operators for classical machine learning, if there are any."""
        versions = self.architecture.ml_opsets
        return None if versions is None else versions[self.architecture.opsets.index(self.opset)]


def zoo_models() -> dict[str, ZooModel]:
    """Return every model of the zoo by its name."""
    models = [
        ZooModel(architecture=architecture, size=size, opset=opset, fixed=fixed)
        for architecture in ARCHITECTURES
        for size in architecture.sizes
        for fixed in ([False, True] if architecture.symbolic and size == "small" else [False])
        for opset in architecture.opsets
    ]
    return {model.name: model for model in models}


def build(model: ZooModel) -> GraphBuilder:
    """Return the finished graph, with its inputs."""
    g = GraphBuilder(
        # Without the opset: both exports have the same weights and must give the same answers.
        seed=f"{model.architecture.name}-{model.size}",
        opset=model.opset,
        ml_opset=model.ml_opset,
        fixed=model.fixed,
    )
    model.architecture.build(g, **model.architecture.sizes[model.size])
    return g


def write_zoo_model(name: str, folder: Path) -> None:
    """Write a model with its inputs into an empty folder."""
    g = build(zoo_models()[name])
    write_model_folder(folder, g.model(name), g.inputs)
