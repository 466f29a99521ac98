"""The process that lets a provider compile one model: JSON on standard input, one line of JSON at its end."""

import importlib
import json
import sys
from typing import Any

from harness.agent.safe_text import clean
from harness.agent.session_target import SessionTarget


def compile_model(asked: dict[str, Any]) -> str:
    """Compile a model into a file, and return the provider's compatibility string; empty if it has none."""
    ort = importlib.import_module("onnxruntime")
    target = SessionTarget(ort, asked["config"], {})

    def adjust(settings: Any) -> None:
        for key, value in (("enable", "1"), ("embed_mode", "1"), ("file_path", asked["out"])):
            settings.add_session_config_entry("ep.context_" + key, value)

    target.session(asked["model"], {}, adjust=adjust)
    bindings = importlib.import_module("onnxruntime.capi._pybind_state")
    read = getattr(bindings, "get_compatibility_info_from_model", None)
    return "" if read is None else (read(asked["out"], target.chain[0]) or "")


def main() -> None:
    """Compile what standard input asks for."""
    try:
        answer = {"compatibility": compile_model(json.load(sys.stdin))}
    except Exception as error:  # noqa: BLE001 - it is the answer
        answer = {"error": clean(error)}
    sys.stdout.write("\n@" + json.dumps(answer))


if __name__ == "__main__":
    main()
