"""Advice for a folder of onnxruntime-genai: its decoder, whether buffers are shared, and code to paste."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness.annex.advise.decode_code import decode_code
from harness.annex.advise.genai_code import genai_code
from harness.annex.advise.session_code import session_code
from harness.annex.advise.sharing import sharing_of
from harness.annex.made.decoders.roster import write_decoder
from harness.core.records.cell import Cell
from harness.core.records.generation_figures import Generated, GenerationFigures
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.corpus.decoders.decoder import Decoder, decoder_of
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.plan.target import Target
from harness.studies.decoders import decoders_in, genai_suite
from tests import small_decoders
from tests.kit import bare_record

CPU = Target(name="cpu", provider=("CPUExecutionProvider",))
CONFIG = "genai_config.json"


def folder_of(root: Path, name: str = "gqa-h64") -> Path:
    folder = root / name
    folder.mkdir()
    write_decoder(name, folder)
    return folder


def cell(**axes: str) -> Cell:
    return Cell(
        suite="s", model="m", target="t", axes=tuple(sorted({"scenario": "generate", **axes}.items()))
    )


def changed(folder: Path, **decoder: object) -> None:
    """Change the part about the decoder in a folder's configuration."""
    content = json.loads((folder / CONFIG).read_text("utf-8"))
    content["model"]["decoder"] |= decoder
    (folder / CONFIG).write_text(json.dumps(content), encoding="utf-8")


def test_the_decoder_of_a_folder_is_found_by_its_configuration(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "model.onnx").rename(folder / "decoder.onnx")
    changed(folder, filename="decoder.onnx")
    suite = genai_suite(folder)
    assert suite.models() == ("decoder.onnx",)
    assert decoders_in(open_folder(tmp_path)) == ("gqa-h64/decoder.onnx",)


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        ({"filename": "absent.onnx"}, CONFIG, "there is no file 'absent.onnx' beside it"),
        ({"filename": "../gqa-h64/model.onnx"}, CONFIG, "there is no file '../gqa-h64/model.onnx' beside it"),
        ({"num_hidden_layers": "two"}, f"{CONFIG}: model.decoder.num_hidden_layers", "two"),
        ({"inputs": {"input_ids": "absent"}}, f"{CONFIG}: model.decoder.inputs.input_ids", "absent"),
        ({"pipeline": [{"a": {}}]}, "model.onnx", "cannot generate text"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said_in_two_lines(
    tmp_path: Path, change: dict[str, object], where: str, what: str
) -> None:
    folder = folder_of(tmp_path)
    changed(folder, **change)
    with pytest.raises(UsageError) as caught:
        genai_suite(folder)
    first, *more = str(caught.value).splitlines()
    assert first.startswith(f"{folder / where}: ")
    assert what in first
    assert len(more) == 1


def test_a_folder_without_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is a folder without genai_config\.json"):
        genai_suite(tmp_path)


def test_models_that_generate_nothing_and_broken_ones_are_no_decoders(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (tmp_path / "broken.onnx").write_bytes(b"nothing")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "gelu.onnx").write_bytes(gelu())
    assert decoders_in(open_folder(tmp_path)) == ("gqa-h64/model.onnx",)
    changed(folder, inputs={"input_ids": "absent"})
    with pytest.raises(UsageError, match="absent"):
        decoders_in(open_folder(tmp_path))


def gelu() -> bytes:
    import onnx.parser

    text = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = Gelu (x) }'
    content: bytes = onnx.parser.parse_model(text).SerializeToString()
    return content


def record(verdict: Verdict, generation: GenerationFigures | None) -> Record:
    return bare_record("m", verdict, target="t", reason="why", generation=generation)


SHARED = GenerationFigures(
    ways=(Generated(way="at_once", positions=4), Generated(way="shared_buffer", positions=4))
)
DECLINED = GenerationFigures(declined={"shared_buffer": "its cache has another shape"})


@pytest.mark.parametrize(
    ("verdict", "generation", "state", "reason"),
    [
        (Verdict.PASS, SHARED, "right", ""),
        (Verdict.PASS_PARTIAL, SHARED, "right", ""),
        (Verdict.MISMATCH, SHARED, "wrong", "why"),
        (Verdict.CRASH, None, "wrong", "why"),
        (Verdict.PASS, DECLINED, "declined", "its cache has another shape"),
        (Verdict.UNAVAILABLE, None, "unknown", "why"),
        (Verdict.NO_GOLDEN, SHARED, "unknown", "why"),
    ],
)
def test_a_shared_buffer_is_right_only_if_it_was_played_and_passed(
    verdict: Verdict, generation: GenerationFigures | None, state: str, reason: str
) -> None:
    found = sharing_of(record(verdict, generation))
    assert (found.state, found.reason) == (state, reason)


@pytest.mark.parametrize(
    "name",
    [
        *("gqa-h64-int4", "mha-h64", "gqa-h64-nodes", "onnx23-h64", "gqa-h64-static", "onnx24-h64-scatter"),
        "static",
    ],
)
def test_the_loop_gives_what_the_whole_text_gives_without_a_cache(tmp_path: Path, name: str) -> None:
    ort = pytest.importorskip("onnxruntime")
    if name == "static":
        getattr(small_decoders, name)(tmp_path / name)
    folder = tmp_path / name if name == "static" else folder_of(tmp_path, name)
    case = load_case(open_folder(folder), "model.onnx", {})
    decoder = decoder_of(case)
    assert isinstance(decoder, Decoder)
    code = session_code(CPU, cell(), folder / "model.onnx") + decode_code(case, decoder)
    program = f"{code}\nprint(generate([1, 2, 3], 6))\n"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    session = ort.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    tokens = [1, 2, 3]
    for _ in range(6):
        feeds: dict[str, np.ndarray] = {}
        for port in session.get_inputs():
            shape = [
                0 if "past" in str(size) else size if isinstance(size, int) else 1 for size in port.shape
            ]
            feeds[port.name] = np.zeros(shape, np.float32)
        length = len(tokens)
        feeds[decoder.tokens] = np.array([tokens], np.int64)
        if decoder.mask:
            columns = np.arange((decoder.masks_cache and decoder.cache_length) or length)
            feeds[decoder.mask] = (columns < length).astype(np.int64)[None]
        feeds |= {name: np.arange(length) for name in decoder.counts}
        if decoder.positions:
            feeds[decoder.positions] = np.arange(length)[None]
        tokens.append(int(session.run([decoder.logits], feeds)[0][0, -1].argmax()))
    assert json.loads(ran.stdout) == tokens


def test_a_decoder_beside_an_encoder_gets_a_comment(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "whisper-h64")
    case = load_case(open_folder(folder), "model.onnx", {})
    decoder = decoder_of(case)
    assert isinstance(decoder, Decoder)
    assert decode_code(case, decoder).startswith("# No loop to paste: its inputs 'past_key_cross_0'")


SESSION = {
    "model": {
        "decoder": {
            "session_options": {
                "graph_optimization_level": "ORT_DISABLE_ALL",
                "intra_op_num_threads": 1,
                "inter_op_num_threads": 1,
            }
        }
    }
}


def test_code_for_genai_has_provider_options_device_and_sharing(tmp_path: Path) -> None:
    npu = Target(
        name="npu",
        provider=("QNNExecutionProvider",),
        plugin="onnxruntime_qnn",
        device={"type": "NPU", "vendor_id": "0x4D4F", "discrete": "1"},
        options={"backend_type": "htp", 'a"b': "c'd"},
        env={"KEY": "value"},
    )
    code = genai_code(npu, cell(graph_optimization="disabled"), tmp_path, shares=False)
    compile(code, "code", "exec")
    assert code.splitlines() == [
        "import os",
        "",
        "os.environ['KEY'] = 'value'",
        "",
        "import onnxruntime_genai as og",
        "import onnxruntime_qnn",
        "",
        "og.register_execution_provider_library('QNNExecutionProvider', onnxruntime_qnn.get_library_path())",
        "",
        f"config = og.Config({str(tmp_path)!r})",
        "config.clear_providers()  # those of genai_config.json; without any, the CPU provider computes",
        "config.append_provider('QNN')",
        """config.set_provider_option('QNN', 'a"b', "c'd")""",
        "config.set_provider_option('QNN', 'backend_type', 'htp')",
        "# onnxruntime-genai cannot choose a device by 'discrete': '1'.",
        "config.set_decoder_provider_options_hardware_device_type('QNN', 'npu')",
        "config.set_decoder_provider_options_hardware_vendor_id('QNN', 19791)",
        f"config.overlay({json.dumps(SESSION)!r})",
        'config.overlay(\'{"search": {"past_present_share_buffer": false}}\')',
        "model = og.Model(config)",
    ]


def test_a_provider_that_genai_does_not_know_gets_a_comment(tmp_path: Path) -> None:
    acl = Target(name="acl", provider=("ACLExecutionProvider",))
    assert genai_code(acl, cell(), tmp_path, shares=True) == (
        "# onnxruntime-genai has no name for ACLExecutionProvider.\n"
    )


def test_code_for_genai_runs(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai")
    folder = folder_of(tmp_path)
    code = genai_code(CPU, cell(graph_optimization="layout"), folder, shares=True)
    program = f"{code}\nprint(og.GeneratorParams(model).get_search_options()['past_present_share_buffer'])\n"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "True"
