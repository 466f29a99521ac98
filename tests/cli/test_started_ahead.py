"""Which commands start the first process before the harness is imported."""

import pytest

from harness.cli import main
from harness.engine.processes import prestarted


@pytest.mark.parametrize(
    ("arguments", "starts"),
    [
        (["check", "NoSuchExecutionProvider"], True),
        (["check", "NoSuchExecutionProvider", "--env", "A=1"], False),
        (["check", "wsm", "--browser"], False),
        (["doctor", "absent.toml"], True),
        (["list", "absent.toml"], False),
    ],
)
def test_a_process_starts_ahead_where_one_of_this_interpreter_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], *, starts: bool
) -> None:
    started: list[bool] = []
    monkeypatch.setattr(prestarted, "prestart_here", lambda: started.append(True))
    assert main(arguments) == 2
    assert capsys.readouterr().err
    assert started == [True] * starts
