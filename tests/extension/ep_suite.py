"""The suite `acme`: models of our own products, made when they are first asked for."""

from pathlib import Path

from harness.corpus.suites.suite import Suite, SuiteSource, suite_of_code


def write(name: str, folder: Path) -> None:
    import onnx.parser

    text = f"<ir_version: 8, opset_import: ['' : 17]> {name} (float[N] x) => (float[N] y) {{ y = Abs(x) }}"
    onnx.save(onnx.parser.parse_model(text.replace("'", '"')), folder / "model.onnx")


def open_acme(name: str) -> Suite:
    return suite_of_code(name, ("camera", "radio"), write, (Path(__file__).parent,))


ACME = SuiteSource(form="acme", line="models of our own products", open=open_acme)
