"""The JavaScript agent and the harness read each other's frames."""

import base64
import io
from collections.abc import Callable
from typing import Any

import pytest

from harness.agent.frame import FrameReader, framed

MESSAGES = [
    ("phase", 7, "run"),
    ("need", 1, "übergröße\n\U0001f600.bin", 0),
    ("result", 2, {"data": bytes(range(256)) * 40, "empty": b"", "again": [b"\n#b 1 0 00000000\n"]}),
]
READ = """
import { FrameReader, frame } from 'agent:frames.mjs';
import { pack, unpack } from 'agent:message.mjs';
"""


@pytest.mark.parametrize("mode", ["binary", "line"])
@pytest.mark.parametrize("step", [1, 7, 100000])
def test_what_one_side_writes_the_other_reads(evaluate: Callable[..., Any], mode: str, step: int) -> None:
    sent = b"".join(framed(message, mode) for message in MESSAGES)
    script = f"""
    {READ}
    const reader = new FrameReader();
    const all = Buffer.from(value.sent, 'base64');
    const back = [];
    for (let at = 0; at < all.length; at += value.step) {{
      for (const found of reader.feed(all.subarray(at, at + value.step))) {{
        const {{ json, parts }} = pack(unpack(found.json, found.binary));
        back.push(...frame(value.mode, json, parts));
      }}
    }}
    give(Buffer.concat(back).toString('base64'));
    """
    back = evaluate(script, {"sent": base64.b64encode(sent).decode(), "step": step, "mode": mode})
    reader = FrameReader(io.BytesIO(base64.b64decode(back)).read)
    assert [reader.message() for _ in MESSAGES] == MESSAGES


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda sent: sent.replace(b"run", b"rum"), "CRC-32"),
        (lambda sent: b"hello\n" + sent, "not the header"),
        (lambda sent: sent[:-1] + b"x", "line feed"),
        (lambda sent: b"x" * 100 + sent, "not a frame"),
    ],
)
def test_what_is_no_frame_is_refused(
    evaluate: Callable[..., Any], change: Callable[[bytes], bytes], problem: str
) -> None:
    sent = change(framed(MESSAGES[0]))
    script = f"""
    {READ}
    try {{ [...new FrameReader().feed(Buffer.from(value, 'base64'))]; give('read'); }}
    catch (error) {{ give(error.message); }}
    """
    assert problem in evaluate(script, base64.b64encode(sent).decode())
