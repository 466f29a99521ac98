"""Turns templates into self-contained HTML pages: each has its own style and script, and loads nothing."""

import base64
import hashlib
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from harness import __version__
from harness.core.files.writing import write_aside, writing
from harness.core.text.errors import Problem, UsageError, one_line
from harness.core.text.visible_text import visible
from harness.data_files import data_root
from harness.report.cells.paging import around
from harness.report.pages.template_loader import TemplateLoader
from harness.report.words.figures import alike, brief, moment, multiple, ratio
from harness.report.words.inert import ADDRESS
from harness.report.words.tone import SYMBOLS, TONES, spoken, tone

_MAX_CHARS = 5_000
"""Length of the longest single text in a page: more than an excerpt of captured output has."""

PAGE_GENERATOR = "ort-ep-harness"
"""The generator that a page names."""


class Pages:
    """Renders pages from templates.

    Texts of models and providers are escaped, and their control characters are spelled out. The content
    security policy of a page names its style and script by hash and forbids the rest.

    Args:
        templates: Folder with templates that replace the shipped ones of the same name.
        added: Folders with templates of other names.

    Attributes:
        environment: Jinja's, with the filters and variables of every template.

    Raises:
        UsageError: The folder does not exist.
    """

    def __init__(self, templates: Path | None = None, *added: Path) -> None:
        if templates is not None and not templates.is_dir():
            what = "there is no such folder of templates"
            raise UsageError.at(templates, what, "name an existing folder")
        self._templates = templates
        shipped = data_root() / "report_templates"
        self._loader = TemplateLoader([*([] if templates is None else [templates]), shipped, *added], shipped)
        self.environment = jinja2.Environment(
            loader=self._loader,
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=_finalize,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.filters.update(
            tone=tone,
            spoken=spoken,
            number="{:,}".format,
            one_line=one_line,
            alike=alike,
            around=around,
            brief=brief,
            moment=moment,
            linked=_linked,
            multiple=multiple,
            ratio=ratio,
        )
        self.environment.globals.update(
            tones=TONES, symbols=SYMBOLS, version=__version__, generator=PAGE_GENERATOR
        )

    def make(self, template: str, *, scripts: tuple[str, ...] = ("report.js",), **context: object) -> str:
        """Render one page: a template that extends ``page.html``, with its scripts and variables.

        Raises:
            UsageError: A template is wrong.
        """
        try:
            style, script = self._inline("report.css"), self._inline(*scripts)
            return self.environment.get_template(template).render(
                style=style, script=script, style_hash=_hash(style), script_hash=_hash(script), **context
            )
        except (jinja2.TemplateError, UnicodeDecodeError) as error:
            raise UsageError(self._problem(error, template)) from error

    def _inline(self, *names: str) -> Markup:
        # Not escaped: nothing in these files comes from a run. The newline at the start belongs to the
        # element, so it is hashed too.
        sources = (self._loader.get_source(self.environment, name)[0] for name in names)
        return Markup("\n" + "\n".join(sources))  # noqa: S704

    def _problem(self, error: Exception, template: str) -> Problem:
        where = getattr(error, "filename", None) or getattr(error, "name", None) or template
        line = getattr(error, "lineno", None)
        shipped = "the shipped templates are wrong; reinstall ort-ep-harness"
        return Problem(
            where=f"{where}" + (f": line {line}" if line else ""),
            what=f"the template is wrong: {one_line(error)}",
            hint=shipped if self._templates is None else f"correct it in {self._templates}, or remove it",
        )


def write_pages(out: Path, pages: Iterable[tuple[str, str]]) -> None:
    """Write ``(file name, text)`` pairs into a folder, which is created if it does not exist.

    Raises:
        UsageError: The folder cannot be written.
    """
    with writing(out, "the page"):
        out.mkdir(parents=True, exist_ok=True)
        for name, text in pages:
            # A page has hashes of its own style and script, so its line ends must not be translated.
            write_aside(out / name, text)


def packed_text(content: bytes, level: int) -> Markup:
    """Return base64 of zlib, which has only letters, digits, "+", "/" and "=": nothing to escape."""
    return Markup(base64.b64encode(zlib.compress(content, level)).decode("ascii"))  # noqa: S704


def _finalize(value: object) -> object:
    # Done here instead of in the templates, so that no expression can be forgotten.
    return _safe(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _linked(text: str, limit: int = 600) -> Markup:
    """Return a text whose addresses are links."""
    line = one_line(visible(text), limit)
    parts, end = [], 0
    for found in ADDRESS.finditer(line):
        parts.append(escape(line[end : found.start()]))
        link = '<a href="{0}" rel="noreferrer noopener">{0}</a>'
        parts.append(Markup(link).format(found[0]))  # noqa: S704 - it escapes what is put in
        end = found.end()
    return Markup("").join([*parts, escape(line[end:])])


@lru_cache(maxsize=1024)
def _safe(text: str) -> Markup:
    # Cached for the few texts that occur ten thousand times in a page.
    return escape(visible(text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"))


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
