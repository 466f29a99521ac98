"""The ``genai_config.json`` of the folders of several sessions, and what it shares with their models."""

from collections.abc import Callable, Mapping
from typing import Any

from harness.annex.made.decoders.form import LAYERS, VOCABULARY, DecoderForm
from harness.corpus.derived.derived_models import MODEL_FILE

FOLDER_FORM = DecoderForm(
    what="a decoder of several sessions", dialect="onnx", opset=17,
    width=64, heads=2, key_heads=2, head=32, attention="Attention", rotary="none",
)  # fmt: skip

IMAGE_TOKEN = 250
"""The token whose places in a text the features of a picture take."""

LAYER_STATES = (("inputs_embeds", "layer_0_output"), ("hidden_states", "output_hidden_states"))
"""For each layer of the pipeline the state that it takes, and the one that it gives."""


def folder_config(name: str) -> dict[str, Any]:
    """Return the content of ``genai_config.json`` for a folder."""
    model = {
        "bos_token_id": 1,
        "context_length": FOLDER_FORM.context,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "vocab_size": VOCABULARY,
        **_CONFIGS[name](),
    }
    model["decoder"] = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "head_size": FOLDER_FORM.head,
        "hidden_size": FOLDER_FORM.width,
        "num_attention_heads": FOLDER_FORM.heads,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": FOLDER_FORM.key_heads,
        **model["decoder"],
    }
    search = {"do_sample": False, "max_length": FOLDER_FORM.context, "num_beams": 1}
    return {"model": model, "search": search}


def _cached(past: str = "past_key_values.%d.{}", present: str = "present.%d.{}") -> dict[str, Any]:
    return {
        "inputs": {f"past_{part}_names": past.format(part) for part in ("key", "value")},
        "outputs": {"logits": "logits"}
        | {f"present_{part}_names": present.format(part) for part in ("key", "value")},
    }


def _with_inputs(decoder: Mapping[str, Any], *names: str, **others: str) -> dict[str, Any]:
    inputs = {name: name for name in names} | others | decoder["inputs"]
    return {**decoder, "inputs": inputs}


def _translation_config() -> dict[str, Any]:
    names = ("input_ids", "encoder_hidden_states", "encoder_attention_mask")
    encoder = {
        "filename": "encoder.onnx",
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask"},
        "outputs": {"encoder_hidden_states": "encoder_hidden_states"},
    }
    decoder = {"filename": MODEL_FILE, **_with_inputs(_cached(), *names)}
    return {"type": "t5", "encoder": encoder, "decoder": decoder}


def _speech_config() -> dict[str, Any]:
    cross = {part: f"present_{part}_cross_%d" for part in ("key", "value")}
    encoder = {
        "filename": "encoder.onnx",
        "hidden_size": FOLDER_FORM.width,
        "num_attention_heads": FOLDER_FORM.heads,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": FOLDER_FORM.heads,
        "head_size": FOLDER_FORM.head,
        "inputs": {"audio_features": "audio_features"},
        "outputs": {
            "encoder_hidden_states": "encoder_hidden_states",
            **{f"cross_present_{part}_names": name for part, name in cross.items()},
        },
    }
    cached = _cached("past_{}_self_%d", "present_{}_self_%d")
    crossed = {f"cross_past_{part}_names": f"past_{part}_cross_%d" for part in ("key", "value")}
    decoder = {"filename": MODEL_FILE, **_with_inputs(cached, "input_ids", **crossed)}
    return {"type": "whisper", "encoder": encoder, "decoder": decoder}


def _vision_config() -> dict[str, Any]:
    names = ("inputs_embeds", "attention_mask", "position_ids")
    return {
        "type": "phi3v",
        "image_token_id": IMAGE_TOKEN,
        "vision": {
            "filename": "vision.onnx",
            "inputs": {"pixel_values": "pixel_values"},
            "outputs": {"image_features": "image_features"},
        },
        "embedding": {
            "filename": "embedding.onnx",
            "inputs": {"input_ids": "input_ids", "image_features": "image_features"},
            "outputs": {"inputs_embeds": "inputs_embeds"},
        },
        "decoder": {"filename": MODEL_FILE, **_with_inputs(_cached(), *names)},
    }


def _pipeline_config() -> dict[str, Any]:
    def layer(number: int, taken: str, **more: Any) -> dict[str, Any]:
        own = [f"{{}}.{number}.{part}" for part in ("key", "value")]
        return {
            "filename": f"layer_{number}.onnx",
            "inputs": [
                taken, "attention_mask", *(["position_ids"] if number == 0 else []),
                *(one.format("past_key_values") for one in own),
            ],
            "outputs": [LAYER_STATES[number][1], *(one.format("present") for one in own)],
            **more,
        }  # fmt: skip

    stages = {
        "embedding": {"filename": "embedding.onnx", "inputs": ["input_ids"], "outputs": ["inputs_embeds"]},
        "layer_0": layer(0, "inputs_embeds", output_names_forwarder={"layer_0_output": "hidden_states"}),
        "layer_1_prompt": layer(1, "hidden_states", run_on_token_gen=False),
        "layer_1_token": layer(1, "hidden_states", run_on_prompt=False),
        "lm_head": {"filename": MODEL_FILE, "inputs": ["output_hidden_states"], "outputs": ["logits"]},
    }
    names = ("input_ids", "attention_mask", "position_ids")
    decoder = {**_with_inputs(_cached(), *names), "pipeline": [stages]}
    return {"type": "decoder-pipeline", "decoder": decoder}


_CONFIGS: dict[str, Callable[[], dict[str, Any]]] = {
    "folder-pipeline": _pipeline_config,
    "folder-speech": _speech_config,
    "folder-translation": _translation_config,
    "folder-vision": _vision_config,
}
"""For each folder its configuration without what all have."""
