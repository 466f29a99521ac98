"""Files of the reference that a command writes are what it writes today."""

import subprocess
import sys
from pathlib import Path

import pytest

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("harness.catalog.reference", "providers.md"),
        ("harness.conformance.submission", "statement.schema.json"),
        ("harness.core.fault", "fault.schema.json"),
        ("harness.corpus.decoders.reference", "decoders.md"),
        ("harness.corpus.variants.reference", "variants.md"),
        ("harness.corpus.zoo.reference", "zoo.md"),
        ("harness.operators.reference", "operators.md"),
        ("harness.plan.baseline_file", "baseline.schema.json"),
        ("harness.plan.file_format", "matrix.schema.json"),
        ("harness.profiles.profile", "profile.schema.json"),
        ("harness.publication.formats", "publication.schema.json"),
        ("harness.report.schemas diff", "diff.schema.json"),
        ("harness.report.schemas report", "report.schema.json"),
        ("harness.triage.manifest", "bundle.schema.json"),
    ],
)
def test_the_command_writes_the_file(words: str, file: str) -> None:
    command = [sys.executable, "-m", *words.split()]
    written = subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout
    assert written == (REFERENCE / file).read_text("utf-8"), f"run: python -m {words} > {file}"
