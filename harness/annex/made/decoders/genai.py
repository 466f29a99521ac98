"""``genai_config.json`` of a decoder, as Model Builder writes it beside the model."""

from typing import Any

from harness.annex.made.decoders.form import LAYERS, VOCABULARY, DecoderForm

_PAD, _START, _END = 0, 1, 2


def genai_config(form: DecoderForm) -> dict[str, Any]:
    """Return the content for a decoder in a dialect of Model Builder."""
    whisper = form.dialect == "whisper"
    if whisper:
        inputs = {"input_ids": "input_ids"} | _cache("past", "past_{}_self_%d")
        inputs |= _cache("cross_past", "past_{}_cross_%d")
        present = "present_{}_self_%d"
    else:
        positions = ("position_ids",) if form.rotary == "nodes" else ()
        inputs = {name: name for name in ("input_ids", "attention_mask", *positions)}
        inputs |= _cache("past", "past_key_values.%d.{}")
        present = "present.%d.{}"
    decoder = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "filename": "model.onnx",
        "head_size": form.head,
        "hidden_size": form.width,
        "inputs": inputs,
        "outputs": {"logits": "logits"} | _cache("present", present),
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
        "type": "whisper" if whisper else "llama",
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


def _cache(role: str, names: str) -> dict[str, str]:
    return {f"{role}_{part}_names": names.format(part) for part in ("key", "value")}
