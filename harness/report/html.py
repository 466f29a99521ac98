"""View model -> one self-contained HTML page."""

import base64
import hashlib
from importlib.metadata import PackageNotFoundError, version

import jinja2
from markupsafe import Markup

from harness.core.errors import one_line
from harness.core.leak import LEAK_KIB, LEAK_MIB, LEAK_SESSIONS
from harness.core.text import visible
from harness.data_files import data_root
from harness.report.precision import on_scale
from harness.report.tone import SYMBOLS, TONES, spoken, tone
from harness.report.view import Report

_MAX_CHARS = 5_000
"""Longest single text in the page: above an excerpt of captured output, below what bloats the page."""


def to_html(report: Report) -> str:
    """Render the page.

    Everything a model or provider said is escaped, and its control characters are spelled out. The page
    refers to nothing outside itself; its content security policy names its own style and script by hash
    and forbids the rest.
    """
    folder = data_root() / "report_templates"
    style = _inline((folder / "report.css").read_text(encoding="utf-8"))
    script = _inline((folder / "report.js").read_text(encoding="utf-8"))
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder, encoding="utf-8"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(tone=tone, spoken=spoken, on_scale=on_scale, number=_number, one_line=one_line)
    return environment.get_template("report.html").render(
        report=report,
        style=style,
        script=script,
        style_hash=_csp_hash(style),
        script_hash=_csp_hash(script),
        tones=TONES,
        symbols=SYMBOLS,
        leak={"kib": int(LEAK_KIB), "sessions": LEAK_SESSIONS, "mib": int(LEAK_MIB)},
        version=_version(),
    )


def _finalize(value: object) -> object:
    # Here rather than in the templates, so that no expression of theirs can be forgotten.
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return visible(value if len(value) <= _MAX_CHARS else value[: _MAX_CHARS - 1] + "…")


def _number(value: int) -> str:
    return f"{value:,}"


def _inline(source: str) -> Markup:
    # Shipped with the harness: nothing in it comes from a run. The newline at the start belongs to the
    # element, so it is hashed too.
    return Markup("\n" + source)  # noqa: S704


def _csp_hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _version() -> str:
    try:
        return version("ort-ep-harness")
    except PackageNotFoundError:
        return "(source checkout)"
