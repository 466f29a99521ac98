"""An onnxruntime whose CPU provider has the faults of this benchmark: a stand-in for an EP.

On the module path of a target's process it changes ``InferenceSession``. Each model has one of the faults
whose form is in it, drawn by the model's digest; what befalls a model is added as a line of JSON to the file
that ``PLANTED_FORMS_FILE`` names. ``PLANTED_FORMS_SESSION`` has entries of each session's configuration.
"""

import json
import os
from pathlib import Path
from typing import Any

FILE = os.environ.get("PLANTED_FORMS_FILE", "")


def planted(module: Any) -> Any:
    healthy_class = module.InferenceSession

    class Planted(healthy_class):  # type: ignore[misc]
        """Places its nodes like a healthy session; what it computes comes from a spoilt one."""

        def __init__(self, model: Any, sess_options: Any = None, *args: Any, **more: Any) -> None:
            options = module.SessionOptions() if sess_options is None else sess_options
            for key, value in json.loads(os.environ["PLANTED_FORMS_SESSION"]).items():
                options.add_session_config_entry(key, value)
            super().__init__(model, options, *args, **more)
            self.content = model if isinstance(model, bytes) else Path(model).read_bytes()
            self.runs = 0

        def run(self, names: Any, feeds: Any, *more: Any) -> Any:
            from benchmarks.fuzzing.spoil import spoilt

            self.runs += 1
            found = spoilt(module, healthy_class, self.content, feeds, first=self.runs == 1)
            if found is None:
                return super().run(names, feeds, *more)
            with Path(FILE).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"model": found.digest, "fault": found.fault}) + "\n")
            return found.session.run(names, feeds, *more)

    return Planted


if FILE:
    from benchmarks.planting import plant

    plant(planted)
