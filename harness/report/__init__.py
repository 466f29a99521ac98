"""Records to published tables: run folder -> view model -> one self-contained HTML page.

Reads ``run.json`` and ``records.jsonl`` only, so it needs no device, no model and no onnxruntime.
"""

from harness.report.render import render

__all__ = ["render"]
