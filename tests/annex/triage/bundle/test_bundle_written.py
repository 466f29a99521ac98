"""What a bundle holds, and what it does not tell."""

import hashlib
import importlib
import json
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.annex.triage.bundle import BundleContents, ModelSource, PrecedingModel, write_bundle
from harness.annex.triage.bundle_files import read_bundle
from harness.annex.triage.bundle_replay import staged
from harness.annex.triage.manifest import manifest_schema
from harness.core.records.fault import Frame, NativeCrash
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.core.values.value import Map, Sequence, Tensor, tensor
from harness.corpus.beside.data_sets import DataSet
from harness.plan.target import Target
from tests.annex.triage.bundle.relu_bundle import CPU, contents, model_bytes

ROOT = Path(__file__).parents[4]
USER, HOST = "zaphodb", "heartofgold"


def test_the_manifest_lists_every_file_with_its_digest(tmp_path: Path) -> None:
    archive = write_bundle(tmp_path / "F1", contents(printed="hello"))
    manifest = json.loads((tmp_path / "F1" / "manifest.json").read_bytes())
    there = {
        path.relative_to(tmp_path / "F1").as_posix()
        for path in (tmp_path / "F1").rglob("*")
        if path.is_file()
    }
    assert set(manifest["files"]) == there - {"manifest.json"}
    assert {"model.onnx", "repro.py", "REPORT.md", "test_data_set_0/input_0.pb", "found/output_0.pb"} <= there
    for name, entry in manifest["files"].items():
        content = (tmp_path / "F1" / name).read_bytes()
        assert entry == {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    with zipfile.ZipFile(archive) as file:
        assert set(file.namelist()) == there
        assert file.testzip() is None
    importlib.import_module("jsonschema").validate(manifest, manifest_schema())


def test_equal_faults_make_equal_archives(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    first, second = (write_bundle(tmp_path / name / "F1", contents()).read_bytes() for name in ("a", "b"))
    assert first == second


def test_an_older_bundle_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "F1"
    write_bundle(folder, contents(printed="old"))
    write_bundle(folder, contents())
    assert not (folder / "printed.txt").exists()
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(UsageError, match="holds other files"):
        write_bundle(other, contents())
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["F1", "F1.zip", "mine"]  # no scratch is left


def test_the_test_data_is_onnx_s_own(tmp_path: Path) -> None:
    made = contents()
    write_bundle(tmp_path / "F1", made)
    proto = onnx.TensorProto.FromString((tmp_path / "F1" / "test_data_set_0" / "input_0.pb").read_bytes())
    (given,) = (value for _, value in made.inputs)
    assert isinstance(given, Tensor)
    assert np.array_equal(numpy_helper.to_array(proto), given.array)


def test_a_file_s_number_is_the_place_in_the_model(tmp_path: Path) -> None:
    """So that data of some outputs, or in another order, are not taken for those of others."""
    text = """<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[2,3] a, float[2,3] x) => (float[2,3] z, float[2,3] y) { y = Relu(x) z = Neg(a) }"""
    one = contents()
    made = contents(
        model=ModelSource(content=model_bytes(text)), inputs=(*one.inputs, ("a", one.inputs[0][1]))
    )
    write_bundle(tmp_path / "F1", made)
    names = {path.name for path in (tmp_path / "F1" / "test_data_set_0").iterdir()}
    assert names == {"input_0.pb", "input_1.pb", "output_1.pb"}
    target = Target(name="here", provider=(CPU,))
    with staged(read_bundle(tmp_path / "F1"), target) as stage:
        (data,) = stage.case.data_sets
    assert [name for name, _ in data.expected] == ["y"]
    assert {name for name, _ in data.inputs} == {"a", "x"}


def test_a_bundle_that_would_say_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow the outputs"):
        write_bundle(tmp_path / "F1", contents(limits={"y": 9.0}))
    with pytest.raises(ValueError, match="needs expected"):
        write_bundle(tmp_path / "F1", contents(expected=()))
    with pytest.raises(ValueError, match="no fault"):
        write_bundle(tmp_path / "F1", contents(Verdict.PASS))
    assert list(tmp_path.iterdir()) == []


def test_nothing_tells_whose_machine_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "users" / USER
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", USER)
    monkeypatch.setattr("socket.gethostname", lambda: f"{HOST}.example.org")
    monkeypatch.chdir(home)
    write_bundle(tmp_path / "F1", telling(home))
    with zipfile.ZipFile(tmp_path / "F1.zip") as file:
        packed = b"\n".join(file.read(name) for name in file.namelist())
    everything = b"\n".join(path.read_bytes() for path in (tmp_path / "F1").rglob("*") if path.is_file())
    for secret in (USER, HOST, str(home), str(tmp_path), str(Path.cwd()), "example.org", "C:\\Users"):
        assert secret.encode() not in everything + packed, secret
    assert b"libvendor.so" in everything  # the file's name is worth telling
    assert b"/enc/layer.0/Relu" in everything  # a node's name is no path


def telling(home: Path) -> BundleContents:
    """Contents whose every text tells something."""
    model = onnx.ModelProto.FromString(model_bytes())
    model.doc_string = f"exported by {USER}"
    model.graph.node[0].name = "/enc/layer.0/Relu"
    model.graph.node[0].doc_string = f'File "{home}/net.py", line 3'
    model.metadata_props.add(key="source", value=f"{home}/net.py")
    model.metadata_props.add(key="task", value="detection")
    told = f"{USER}@{HOST} ran {home}/net.py, C:\\Users\\{USER}\\x.dll, /enc/layer.0/Relu, http://{HOST}.example.org/x"
    library = home / "libvendor.so"
    library.write_bytes(b"library")
    target = Target(
        name="here",
        provider=(CPU,),
        plugin=str(library),
        options={"cache": f"{home}/cache", "json": json.dumps({"dir": f"{home}/x"}), "fast": "1"},
        env={"VENDOR_HOME": str(home), "VENDOR_MODE": "fast"},
    )
    made = contents(
        fault={"sentence": told, "message": told, "cause": told},
        model=ModelSource(content=model.SerializeToString()),
        target=target,
        printed=told,
        fingerprint={
            "onnxruntime": "1.31.1",
            "python": "3.11.7",
            "platform": f"Linux-6.1-{HOST}",
            "packages": {"onnxruntime": "1.31.1", "numpy": "2.4.6", "zaphods-own": "1"},
            "plugin": {"library": str(library), "version": "1.0"},
            "devices": [{"device": {"vendor": "V", "path": f"{home}/dev"}}],
        },
        library=library,
    )
    assert made.library is not None
    return made


def test_harmless_metadata_stays(tmp_path: Path) -> None:
    write_bundle(tmp_path / "F1", telling(tmp_path))
    model = onnx.load(tmp_path / "F1" / "model.onnx")
    assert [(one.key, one.value) for one in model.metadata_props] == [("task", "detection")]
    assert not model.doc_string
    assert not model.graph.node[0].doc_string


def test_the_target_is_told_without_folders(tmp_path: Path) -> None:
    write_bundle(tmp_path / "F1", telling(tmp_path))
    target = read_bundle(tmp_path / "F1").manifest.target
    assert target.plugin is not None
    assert target.plugin.library == "libvendor.so"
    assert target.plugin.sha256 == hashlib.sha256(b"library").hexdigest()
    assert target.options["fast"] == "1"
    assert target.options["cache"] == "<path>/cache"
    assert target.env["VENDOR_MODE"] == "fast"


def test_external_data_gets_a_name_of_ours(tmp_path: Path) -> None:
    """Also in a subgraph, and from a folder within the folder."""
    weights = np.arange(12, dtype=np.float32)
    source = tmp_path / "source" / "deep"
    source.mkdir(parents=True)
    (source / "w.bin").write_bytes(bytes(8) + weights.tobytes())
    moved = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[12], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "deep/w.bin"), ("offset", "8"), ("length", "48")):
        moved.external_data.add(key=key, value=value)
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [12])
    branch = helper.make_graph([helper.make_node("Identity", ["w"], ["o"])], "b", [], [out], [moved])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [12])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    made = contents(
        model=ModelSource(content=model.SerializeToString(), folder=tmp_path / "source"),
        inputs=(("c", tensor(np.array([True]).reshape(()))),),
        expected=(("y", tensor(weights)),),
        found=(("y", tensor(weights + 1)),),
    )
    write_bundle(tmp_path / "F1", made)
    assert (tmp_path / "F1" / "model.data").is_file()
    onnx.checker.check_model(str(tmp_path / "F1" / "model.onnx"))
    session = importlib.import_module("onnxruntime").InferenceSession(
        tmp_path / "F1" / "model.onnx", providers=[CPU]
    )
    assert np.array_equal(session.run(None, {"c": np.array([True]).reshape(())})[0], weights)
    outside = ModelSource(
        content=model.SerializeToString().replace(b"deep/w.bin", b"../secrets"), folder=source
    )
    with pytest.raises(ValueError, match="outside"):
        write_bundle(tmp_path / "F2", contents(model=outside))


def test_containers_further_sets_and_preceding_models_are_written(tmp_path: Path) -> None:
    keys, values = tensor(np.array([1, 2])), tensor(np.array([0.5, 0.25], np.float32))
    odd = (
        ("s", Sequence(items=(tensor(np.ones(2)), tensor(np.array(["ä", ""], object))))),
        ("m", Map(keys=keys, values=values)),
        ("o", None),
    )
    one = contents()
    made = contents(
        inputs=(*one.inputs, *odd),
        further=(DataSet(name="next", inputs=one.inputs, expected=one.expected),),
        preceding=(PrecedingModel(model=one.model, inputs=one.inputs),),
    )
    write_bundle(tmp_path / "F1", made)
    manifest = read_bundle(tmp_path / "F1.zip").manifest
    assert [value.kind for value in manifest.data_sets[0].inputs] == [
        "tensor",
        "sequence(tensor)",
        "map",
        "optional(tensor)",
    ]
    assert len(manifest.data_sets) == 2
    assert manifest.preceding[0].model == "preceding/0/model.onnx"
    assert (tmp_path / "F1" / "preceding" / "0" / "test_data_set_0" / "input_0.pb").is_file()


def test_the_report_answers_the_questions_of_onnxruntime(tmp_path: Path) -> None:
    frames = (Frame(library="libvendor.so", function="vendor::run", offset=18),)
    crash = NativeCrash(signal="SIGSEGV", frames=frames, culprit="libvendor.so")
    write_bundle(tmp_path / "F1", contents(fault={"crash": crash, "sentence": "a *bold* <b>claim</b>"}))
    text = (tmp_path / "F1" / "REPORT.md").read_text("utf-8")
    for question in (
        "Describe the issue",
        "To reproduce",
        "Urgency",
        "Platform",
        "OS Version",
        "ONNX Runtime Installation",
        "ONNX Runtime Version or Commit ID",
        "ONNX Runtime API",
        "Architecture",
        "Execution Provider",
        "Execution Provider Library Version",
        "Model File",
        "Is this a quantized model?",
    ):
        assert f"\n### {question}\n" in f"\n{text}"
    assert "| [0, 0] | `0.0` | `1.0` |" in text
    assert "`Relu`" in text
    assert "is gone (`pass`)" in text
    assert "vendor::run+0x12" in text
    assert "Reduced from 40 to 1 nodes" in text
    assert "<b>" not in text
    assert "*bold*" not in text.replace("\\*bold\\*", "")


def test_a_hostile_name_stays_in_its_code_span(tmp_path: Path) -> None:
    from markdown_it import MarkdownIt

    name = "`x` | <img src=x> ![a](https://e.org) @all ~~~~~~~~\n# title"
    write_bundle(
        tmp_path / "F1",
        contents(
            expected=((name, contents().expected[0][1]),),
            found=((name, contents().found[0][1]),),
            limits={name: 1e-3},
        ),
    )
    page = MarkdownIt("commonmark", {"html": True}).enable("table")
    html = page.render((tmp_path / "F1" / "REPORT.md").read_text("utf-8"))
    assert "<img" not in html
    assert "<h1>" not in html
    assert "<a href" not in html


def test_it_says_what_the_model_of_the_cell_was_fed(tmp_path: Path) -> None:
    write_bundle(tmp_path / "F1", contents(fault={"fed": "your data: test_data_set_0"}))
    bundle = read_bundle(tmp_path / "F1")
    assert bundle.manifest.fault.fed == "your data: test_data_set_0"
    told = (tmp_path / "F1" / "REPORT.md").read_text("utf-8")
    assert "was fed: `your data: test_data_set_0`" in told
