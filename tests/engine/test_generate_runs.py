"""The scenario ``generate`` in a run: decoders on the real CPU EP, and what keeps a way from being judged."""

from pathlib import Path
from typing import Any

import pytest

from harness.annex.made.decoders.roster import write_decoder
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.core.records.ways import WAYS
from tests import small_decoders
from tests.kit import of_folder, records_of, run_matrix, write_model

pytest.importorskip("onnxruntime")

GENERATE = {"length": 16, "new_tokens": 4}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    home = tmp_path_factory.mktemp("generate")
    (home / "models" / "decoder").mkdir(parents=True)
    write_decoder("gqa-h64", home / "models" / "decoder")
    small_decoders.counting(home / "models" / "sums")
    small_decoders.counting(home / "models" / "forgets", forgets=True)
    small_decoders.counting(home / "models" / "refuses", refuses=3)
    write_model(home / "models" / "plain.onnx")
    matrix: dict[str, Any] = of_folder(
        {"name": "cpu", "provider": "CPUExecutionProvider"},
        axes={"scenario": ["generate"]},
        scenarios={"generate": GENERATE},
        tolerance=[{"noise": {}}],
        latency=[{"model": "*/sums/*", "warm_up": 0, "repeats": 2}],
    )
    found = records_of(run_matrix(home, matrix))
    return {Path(record.model).parent.name or Path(record.model).stem: record for record in found}


def test_a_decoder_passes_in_every_way_that_it_can_be_played(records: dict[str, Record]) -> None:
    record = records["decoder"]
    assert record.verdict is Verdict.PASS, record.reason
    assert record.generation is not None
    played = {"lengths" if way.way.startswith("length_") else way.way for way in record.generation.ways}
    assert played == WAYS.keys() - {"left_padded"}
    assert record.generation.declined.keys() == {"left_padded"}
    for way in record.generation.ways:
        assert len(way.kl) == way.positions
        assert max(kl for kl in way.kl if kl is not None) < 1e-6
        assert way.top1 == way.top5 == way.top10 == 1.0
        assert way.perplexity == pytest.approx(way.golden_perplexity, rel=1e-4)
    assert len(record.generation.text) == GENERATE["new_tokens"]
    assert record.generation.speed is None
    assert record.scenario["ways"] == tuple(way.way for way in record.generation.ways)


def test_speed_is_in_the_record_where_the_matrix_asks_for_latency(records: dict[str, Record]) -> None:
    record = records["sums"]
    assert record.verdict.family is Family.PASSED, record.reason
    assert record.latency is not None
    assert record.generation is not None
    speed = record.generation.speed
    assert speed is not None
    assert list(speed.first_token_ms) == [1, 4, 16]
    assert list(speed.tokens_per_s) == [1, 2, 4]
    assert speed.cache_mib == pytest.approx(16 * 4 * 4 / 2**20, abs=1e-6)


def test_the_cpu_ep_is_accused_of_ways_in_which_it_departs(records: dict[str, Record]) -> None:
    record = records["forgets"]
    assert record.verdict is Verdict.MISMATCH
    assert record.reason.startswith("way step: logits wrong from position 12 on; KL ")
    assert record.generation is not None
    bad = {way.way: way.first_bad for way in record.generation.ways if way.first_bad is not None}
    assert bad["from_first"] == 4
    assert bad["chunks"] == 7
    assert not {"at_once", "no_cache", "length_1", "length_2", "length_3"} & bad.keys()
    assert "from_first differs from at_once from position 4 on" in record.generation.disagreements


def test_an_error_names_the_way(records: dict[str, Record]) -> None:
    record = records["refuses"]
    assert record.verdict is Verdict.ERROR
    assert record.reason.startswith("with step: ")
    assert record.generation is None


def test_a_model_that_is_no_decoder_is_declared_with_the_reason(records: dict[str, Record]) -> None:
    record = records["plain"]
    assert record.verdict is Verdict.DECLARED
    assert record.reason.startswith("it is no decoder that the scenario can play: ")
