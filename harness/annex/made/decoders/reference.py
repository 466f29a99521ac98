"""The page about the suite ``generate``, written from the models: ``docs/reference/decoders.md``."""

import math

from harness.annex.made.decoders.folder_configs import folder_config
from harness.annex.made.decoders.folders import folder_models
from harness.annex.made.decoders.form import LAYERS, VOCABULARY, WEIGHT_BLOCK, DecoderForm
from harness.annex.made.decoders.roster import DECODERS, FOLDERS, LEFT_OUT, build, decoder_names
from harness.annex.made.zoo.reference import table
from harness.corpus.model.model_facts import model_facts
from harness.corpus.model.nodes import operator_set

_HEAD = f"""# Decoders

Language models in the forms in which they are shipped, built by code with seeded weights. This page is
written by `tox -e generate` from the models themselves.

```toml
[models]
suites = ["generate"]
```

* **Two dialects.** `onnx23-*` and `onnx24-*` are of ONNX's own operators. The others are as Model Builder of
  onnxruntime-genai writes them: operators of `com.microsoft`, `seqlens_k` and `total_sequence_length` that
  are computed from the mask, and a `genai_config.json` beside the model.
* **Names** are Model Builder's: `input_ids`, `attention_mask`, `position_ids`, `past_key_values.N.key`,
  `present.N.key`, `logits`. `whisper-*` has `past_key_self_N` for its own cache and `past_key_cross_N` for
  that of its encoder.
* **Sizes.** All have {LAYERS} layers and {VOCABULARY} tokens, and run in milliseconds. In names, `h64` is the
  number of elements of a head.
* **Weights** are random numbers, scaled so that every part matters for the logits: each layer, the positions,
  the mask, a window, a cap, zero points. Tests take each of them away and look at what changes. Nothing is
  trained: the text means nothing, numbers do.
* **Quantized weights** have blocks of {WEIGHT_BLOCK} along the sum. Embeddings are quantized like the rest.
* **Inputs** of the suite are one new token after cached ones, for two texts.
* **Building.** A model is built when it is first asked for, and kept in the [cache](corpus.md#the-cache).
"""

_FOLDERS = f"""
## Folders of several sessions

One of each kind that `genai_config.json` describes. They have operators of ONNX 17 alone, {LAYERS} layers of
2 heads, and the same {VOCABULARY} tokens. The suite has them as models by the names of the folders: in the
scenario [`generate`](scenarios.md#folders-of-several-sessions) all sessions are chained, in any other one the
model that gives the logits, `model.onnx`, runs alone.
"""

_OPINION = """
[onnxruntime-genai](https://pypi.org/project/onnxruntime-genai/) 0.18.0 plays three of them on its CPU:
`folder-pipeline` as `decoder-pipeline`, `folder-vision` as `phi3v`, and `folder-speech` as `whisper`, with
sound of 3000 frames, the only number that it takes. It chooses the same 8 tokens after a prompt, and its
logits differ from those of the golden by less than 0.0001: `tests/real_ep/test_genai_opinion.py`, part of
`tox -e long`. It refuses `folder-translation`: of encoders of text it knows Marian alone, whose decoder takes
one token for each text and a recurrent state, which the scenario does not lay out.
"""

_OUT = """
## Left out

The golden is what the CPU EP computes. These forms are shipped too, but the CPU EP has no kernels for them.
For bfloat16, take another model at `precision = "bf16"`.
"""


def reference() -> str:
    """Return the page as Markdown."""
    rows = [_row(name, DECODERS[name]) for name in decoder_names()]
    columns = ("model", "what", "heads", "positions", "type", "weights", "size", "operators of note")
    lines = [_HEAD, f"{len(rows)} models of one session:", "", *table(columns, rows)]
    lines += [_FOLDERS, *table(("folder", "what", "type", "files", "size"), map(_folder, sorted(FOLDERS)))]
    lines += [_OPINION.rstrip()]
    if LEFT_OUT:
        left_out = ((f"`{name}`", DECODERS[name].what, reason) for name, reason in LEFT_OUT.items())
        lines += [_OUT, *table(("form", "what", "missing"), left_out)]
    return "\n".join([*lines, ""])


def _row(name: str, form: DecoderForm) -> tuple[str, ...]:
    proto = build(name).model(name)
    weights = sum(math.prod(weight.dims) for weight in proto.graph.initializer)
    return (
        f"`{name}`",
        form.what,
        f"{form.heads} / {form.key_heads}",
        str(form.context),
        f"{form.dtype}, {form.bits} bits" if form.bits else form.dtype,
        f"{weights / 1e3:.3g} k",
        f"{proto.ByteSize() / 1e6:.2g} MB",
        ", ".join(sorted(_NOTED & model_facts(proto).op_types.keys())),
    )


def _folder(name: str) -> tuple[str, ...]:
    models = {file: g.model(name).ByteSize() for file, g in folder_models(name).items()}
    return (
        f"`{name}`",
        FOLDERS[name],
        f"`{folder_config(name)['model']['type']}`",
        ", ".join(f"`{file}`" for file in models),
        f"{sum(models.values()) / 1e6:.2g} MB",
    )


_NOTED = operator_set("""
    Attention GatherBlockQuantized GroupQueryAttention MatMulNBits MoE MultiHeadAttention QMoE
    RMSNormalization RotaryEmbedding SimplifiedLayerNormalization SkipLayerNormalization
    SkipSimplifiedLayerNormalization TensorScatter
""")
"""Operators that few other models have."""
