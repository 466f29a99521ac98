"""Records to published tables: run folder -> view model -> HTML site, Markdown, CSV, JSON, JUnit XML.

Reads ``run.json`` and ``records.jsonl`` only, so it needs no device, no model and no onnxruntime.
"""
