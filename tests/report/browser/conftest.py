"""Headless Chromium, driven by its DevTools protocol over a pipe: no driver, no port."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 120
AXE = "4.14.1"
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}
# Chromium takes commands from descriptor 3 and answers on 4.
AS_3_AND_4 = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for place, pipe in enumerate(pipes, start=3):
    os.dup2(pipe, place)
os.execv(sys.argv[3], sys.argv[3:])
"""


LOW_CONTRAST = """
(() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const over = (top, below) => below.map((c, i) => top[i] * top[3] + c * (1 - top[3]));
  const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const upwards = function* (element) {
    for (let e = element; e; e = e.parentElement) { yield e; }
  };
  const ground = (element) => Array.from(upwards(element), (e) => parse(getComputedStyle(e).backgroundColor))
    .reduceRight((below, colour) => over(colour, below), [255, 255, 255]);
  const low = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    const isShown = e.getClientRects().length && !/^(script|style|title|option)$/.test(e.localName);
    if (!isShown || !node.data.trim()) {
      continue;
    }
    const style = getComputedStyle(e);
    const ink = parse(e instanceof SVGElement ? style.fill : style.color);
    for (const each of upwards(e)) {
      ink[3] *= Number(getComputedStyle(each).opacity);
    }
    const below = ground(e);
    const [dark, bright] = [light(over(ink, below)), light(below)].sort((x, y) => x - y);
    const ratio = (bright + 0.05) / (dark + 0.05);
    if (ratio < 4.5) {
      low[`${e.localName}.${e.getAttribute("class")}`] = ratio;
    }
  }
  return low;
})()
"""
"""Texts whose contrast with their ground is below 4.5, as WCAG 2.2 computes it."""


class Browser:
    """A Chromium and one tab in it; collects what went wrong in every page that was opened."""

    def __init__(self, chromium: str, profile: Path) -> None:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                AS_3_AND_4,
                str(theirs_in),
                str(theirs_out),
                chromium,
                *arguments,
                "about:blank",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._numbers = itertools.count(1)
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer}"
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            received = os.read(self._from, 1 << 20)
            assert received, "the browser has ended"
            self._buffer += received
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, url: str) -> None:
        """Load a page from scratch and wait for it."""
        self.value("0")  # a page that led to another one may have told of both
        self._events.clear()
        self.call("Page.navigate", url="about:blank")
        self._wait_for("Page.loadEventFired")
        self._events.clear()
        self.call("Page.navigate", url=url)
        self._wait_for("Page.loadEventFired")

    def _wait_for(self, method: str) -> None:
        while not any(event.get("method") == method for event in self._events):
            self._events.append(self._next())
        self._events = [event for event in self._events if event.get("method") != method]

    def value(self, expression: str) -> Any:
        """What an expression gives in the page; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer}"
        return answer["result"].get("value")

    def low_contrast(self) -> dict[str, float]:
        """Return the texts with too little contrast, by element and class, with their contrast."""
        found: dict[str, float] = self.value(LOW_CONTRAST)
        return found

    def violations(self, axe: str) -> list[str]:
        """Return what axe-core finds wrong: the rule, and the first element that breaks it."""
        self.value(f"{axe}\n;0")
        found: list[str] = self.value(
            "axe.run(document).then((told) => told.violations.map("
            "(one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`))"
        )
        return found

    def until(self, expression: str) -> None:
        """Wait until an expression holds, also if the page leads to another one meanwhile."""
        end = time.monotonic() + PATIENCE_S
        while not self._holds(expression):
            assert time.monotonic() < end, f"never: {expression}"
            time.sleep(0.05)

    def _holds(self, expression: str) -> bool:
        try:
            return bool(self.value(expression))
        except AssertionError as error:
            if "navigated" not in str(error):
                raise
            return False

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = "\r" if key == "Enter" and kind == "keyDown" else ""
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                text=text,
                windowsVirtualKeyCode=KEYS[key],
            )

    def look(self, **features: str) -> None:
        """Set media features, such as ``prefers_color_scheme="dark"``."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", media="", features=named)

    def size(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def picture(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def printed(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF")["data"])

    @property
    def complaints(self) -> list[dict[str, Any]]:
        """Errors and warnings of the console since the page was opened."""
        self.value("0")  # what was said before stands in the pipe before this answer
        methods = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        return [event for event in self._events if event.get("method") in methods]

    @property
    def requests(self) -> set[str]:
        """Addresses asked for since the page was opened."""
        self.value("0")
        return {
            event["params"]["request"]["url"].partition("#")[0]
            for event in self._events
            if event.get("method") == "Network.requestWillBeSent"
        } - {"about:blank"}


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Source of axe-core, which checks a page against WCAG: from npm, which runs none of its scripts."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm here")
    home = tmp_path_factory.mktemp("axe")
    (home / "package.json").write_text("{}", "utf-8")
    command = [npm, "install", "--ignore-scripts", "--no-save", "--no-audit", f"axe-core@{AXE}"]
    subprocess.run(command, cwd=home, check=True, capture_output=True, timeout=PATIENCE_S)
    return (home / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must have a browser: the pages are checked in it")
        pytest.skip("no Chromium here")
    opened = Browser(path, tmp_path_factory.mktemp("profile"))
    try:
        yield opened
    finally:
        opened.close()
