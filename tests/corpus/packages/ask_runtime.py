"""Open packages with onnxruntime's own API: one folder a line on standard input, one answer a line.

It runs in a child process, as a damaged package may end it. An answer is a JSON object: ``error``, or
``components`` (name -> [variant, provider]) and ``chosen`` (name -> variant, or null).
"""

import json
import sys
from typing import Any


def _answer(ort: Any, root: str) -> dict[str, Any]:
    try:
        context = ort.ModelPackageContext(root)
    except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
        return {"error": str(error)}
    components, chosen = {}, {}
    for name in context.get_component_names():
        variants = context.get_variant_names(name)
        components[name] = [[one, context.get_variant_ep_name(name, one) or ""] for one in variants]
        try:
            options = ort.ModelPackageOptions(ort.SessionOptions())
            chosen[name] = context.select_component(name, options).get_selected_variant_name()
        except Exception:  # noqa: BLE001 - nothing matches
            chosen[name] = None
    return {"components": components, "chosen": chosen}


def main() -> None:
    """Answer until the input ends; the first line says whether there is such an API."""
    import onnxruntime as ort

    _tell(hasattr(ort, "ModelPackageContext"))
    for line in sys.stdin:
        _tell(_answer(ort, json.loads(line)))


def _tell(answer: object) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
