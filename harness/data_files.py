"""Where the shipped data lives: matrices, report templates, recorded goldens."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
"""The folder of the package, with its links resolved."""


def data_root() -> Path:
    """The folder that holds ``matrices/``, ``report_templates/`` and ``golden/``.

    Returns:
        ``harness/_data`` in an installed wheel; the top level of the repository in a checkout.
    """
    installed = PACKAGE / "_data"
    return installed if installed.is_dir() else PACKAGE.parent
