"""Scenario ``from_bytes``: the model comes from memory, as out of an archive or a decryption."""

from __future__ import annotations

import os
from typing import Any

from harness.agent.errors import UnsupportedError
from harness.agent.text import clean
from harness.agent.turn import Turn

FOLDER_KEY = "session.model_external_initializers_file_folder_path"
"""Says where external weights lie that a path would have led to."""

FOLDER_KNOWN = (1, 21)
"""The first onnxruntime that heeds it."""


def play(turn: Turn) -> None:
    """Read the model's file, and give onnxruntime what is in it.

    Raises:
        UnsupportedError: This onnxruntime does not find the weights that lie beside a model without its path.
    """
    path = turn.job["model"]
    if isinstance(path, str):
        with open(path, "rb") as file:
            turn.model = file.read()

        def adjust(settings: Any) -> None:
            settings.add_session_config_entry(FOLDER_KEY, os.path.dirname(os.path.abspath(path)))

        turn.adjust = adjust
    turn.facts["model_bytes"] = len(turn.model)
    try:
        turn.create()
    except Exception as error:
        if turn.target.version >= FOLDER_KNOWN:
            raise
        turn.model = path
        turn.open()  # where this fails, too, it is not for want of the path
        reason = "onnxruntime %s does not find the weights of a model without path, 1.21 is the first: %s"
        raise UnsupportedError(reason % (clean(turn.target.ort.__version__), clean(error))) from error
    turn.run()
    turn.conclude()
