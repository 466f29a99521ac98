"""Where the shipped data lives: matrices, report templates."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_root() -> Path:
    """The folder that holds ``matrices/`` and ``report_templates/``.

    Returns:
        ``harness/_data`` in an installed wheel; the top level of the repository in a checkout.
    """
    installed = _PACKAGE / "_data"
    return installed if installed.is_dir() else _PACKAGE.parent
