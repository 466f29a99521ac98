"""``genai_config.json`` of a decoder, as Model Builder writes it beside the model."""

from typing import Any

from harness.corpus.decoders.form import LAYERS, VOCABULARY, Form

_PAD, _START, _END = 0, 1, 2


def genai_config(form: Form) -> dict[str, Any]:
    """Return the content for a decoder in a dialect of Model Builder."""
    decoder = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "filename": "model.onnx",
        "head_size": form.head,
        "hidden_size": form.width,
        "inputs": _whisper_inputs() if form.dialect == "whisper" else _inputs(form),
        "outputs": _whisper_outputs() if form.dialect == "whisper" else _outputs(),
        "num_attention_heads": form.heads,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": form.key_heads,
    }
    model = {
        "bos_token_id": _START,
        "context_length": form.context,
        "decoder": decoder,
        "eos_token_id": _END,
        "pad_token_id": _PAD,
        "type": "whisper" if form.dialect == "whisper" else "llama",
        "vocab_size": VOCABULARY,
    }
    search = {
        "do_sample": False,
        "max_length": form.context,
        "min_length": 0,
        "num_beams": 1,
        "past_present_share_buffer": form.attention == "GroupQueryAttention",
        "temperature": 1.0,
        "top_k": 50,
        "top_p": 1.0,
    }
    return {"model": model, "search": search}


def _inputs(form: Form) -> dict[str, str]:
    positions = {"position_ids": "position_ids"} if form.rotary == "nodes" else {}
    return {
        "input_ids": "input_ids",
        "attention_mask": "attention_mask",
        **positions,
        "past_key_names": "past_key_values.%d.key",
        "past_value_names": "past_key_values.%d.value",
    }


def _outputs() -> dict[str, str]:
    return {
        "logits": "logits",
        "present_key_names": "present.%d.key",
        "present_value_names": "present.%d.value",
    }


def _whisper_inputs() -> dict[str, str]:
    return {
        "input_ids": "input_ids",
        "past_key_names": "past_key_self_%d",
        "past_value_names": "past_value_self_%d",
        "cross_past_key_names": "past_key_cross_%d",
        "cross_past_value_names": "past_value_cross_%d",
    }


def _whisper_outputs() -> dict[str, str]:
    return {
        "logits": "logits",
        "present_key_names": "present_key_self_%d",
        "present_value_names": "present_value_self_%d",
    }
