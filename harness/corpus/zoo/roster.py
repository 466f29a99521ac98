"""The zoo's models by name. Naming them builds nothing and imports no onnx."""

import msgspec

from harness.corpus.zoo.architecture import Architecture
from harness.corpus.zoo.bert import BERT
from harness.corpus.zoo.detector import DETECTOR
from harness.corpus.zoo.diffusion import DIFFUSION
from harness.corpus.zoo.efficientnet import EFFICIENTNET
from harness.corpus.zoo.gpt import GPT
from harness.corpus.zoo.int4 import INT4
from harness.corpus.zoo.int8 import INT8
from harness.corpus.zoo.llama import LLAMA
from harness.corpus.zoo.mnist import MNIST
from harness.corpus.zoo.mobilenet import MOBILENET
from harness.corpus.zoo.resnet import RESNET
from harness.corpus.zoo.speech import SPEECH_GRU, SPEECH_LSTM
from harness.corpus.zoo.text import TEXT
from harness.corpus.zoo.trees import TREES
from harness.corpus.zoo.unet import UNET
from harness.corpus.zoo.vit import VIT

ARCHITECTURES: tuple[Architecture, ...] = (
    MNIST,
    RESNET,
    MOBILENET,
    EFFICIENTNET,
    UNET,
    VIT,
    BERT,
    GPT,
    LLAMA,
    SPEECH_LSTM,
    SPEECH_GRU,
    DETECTOR,
    DIFFUSION,
    INT8,
    INT4,
    TREES,
    TEXT,
)
"""All architectures, in the order of the reference."""


class ZooModel(msgspec.Struct, frozen=True, kw_only=True):
    """One export of an architecture.

    Attributes:
        architecture: Which.
        size: A key of its sizes.
        opset: One of its opsets.
        fixed: Whether its symbolic dimensions are declared by their sizes, as accelerators want them.
    """

    architecture: Architecture
    size: str
    opset: int
    fixed: bool = False

    @property
    def name(self) -> str:
        """Such as ``resnet-small-op17``, or ``resnet-small-fixed-op17``."""
        parts = [self.architecture.name, self.size, *["fixed"] * self.fixed, f"op{self.opset}"]
        return "-".join(parts)

    @property
    def ml_opset(self) -> int | None:
        """Version of the operators for classical machine learning, where there are any."""
        versions = self.architecture.ml_opsets
        return None if versions is None else versions[self.architecture.opsets.index(self.opset)]


def zoo_models() -> dict[str, ZooModel]:
    """Every model of the zoo by its name."""
    models = [
        ZooModel(architecture=architecture, size=size, opset=opset, fixed=fixed)
        for architecture in ARCHITECTURES
        for size in architecture.sizes
        for fixed in ([False, True] if architecture.symbolic and size == "small" else [False])
        for opset in architecture.opsets
    ]
    return {model.name: model for model in models}
