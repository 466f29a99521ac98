"""The matrix of language models as it is planned; what becomes of it takes the providers."""

from harness.annex.made.decoders.roster import FOLDERS, decoder_names
from harness.data_files import data_root
from harness.engine.prepare import prepare

MOST_ON_A_SIMULATED_GPU = 8
"""Models that SwiftShader plays in some minutes."""


def test_every_decoder_is_played_on_every_target_but_the_simulated_gpu() -> None:
    plan = prepare(data_root() / "matrices" / "generate.toml")[0]
    models = {
        target.name: {cell.model for cell in plan.cells if cell.target == target.name}
        for target in plan.matrix.targets
    }
    simulated = models.pop("webgpu-swiftshader")
    assert 0 < len(simulated) <= MOST_ON_A_SIMULATED_GPU
    assert all(played == {*decoder_names(), *FOLDERS} for played in models.values())
    assert {cell.axis("scenario") for cell in plan.cells} == {"generate"}
    assert "cpu" not in {glob for entry in plan.matrix.expect for glob in entry.selector.target}
