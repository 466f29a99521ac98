"""Ask onnx's checker about models. This runs in a process of its own, which a model may crash.

Each line of standard input is the path of a model, as JSON. The answer is a line of JSON: why the checker
refuses it, or an empty text.
"""

import json
import os
import sys


def model_problem(path: str) -> str:
    """Return why onnx's checker, or its type inference, refuses a model; empty if they accept it."""
    import onnx
    from onnx.checker import ValidationError
    from onnx.shape_inference import InferenceError

    try:
        # By its path: then the checker also reads external data, and models of more than 2 GiB.
        onnx.checker.check_model(path, full_check=True)
    except (ValidationError, InferenceError) as error:
        return " ".join(str(error).split())
    return ""


def answer_requests() -> None:
    """Answer until standard input ends."""
    # What onnx prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    for line in sys.stdin:
        answers.write(json.dumps(model_problem(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    answer_requests()
