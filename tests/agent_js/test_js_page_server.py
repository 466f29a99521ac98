"""The server of a page answers the page alone, and no request ends it."""

import json
import random
import socket
import subprocess
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from harness.runtimes.javascript import AGENTS

SERVER = """
import { PageServer } from 'agent:page_server.mjs';
const server = new PageServer(process.argv[1], { threads: 1 });
const given = [];
const address = await server.listen();
server.on({ give: (json) => given.push(json.toString()), told: () => given });
console.log(address);
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
"""


class Page:
    """A server, as a program of the machine reaches it."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        assert parts.port is not None
        self.host, self.port, self.path = parts.netloc, parts.port, parts.path

    def send(self, data: bytes, *, is_whole: bool = False) -> bytes:
        """What comes back for some bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as connection:
            connection.sendall(data)
            if not is_whole:
                connection.shutdown(socket.SHUT_WR)
            found = b""
            try:
                while part := connection.recv(1 << 16):
                    found += part
            except ConnectionError:
                pass
            return found

    def ask(
        self, path: str, method: str = "GET", body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body of an answer."""
        lines = {
            "Host": self.host,
            "Connection": "close",
            "Content-Length": str(len(body)),
            **(headers or {}),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        found = self.send(f"{method} {path} HTTP/1.0\r\n{head}\r\n".encode() + body, is_whole=True)
        return int(found.split()[1]), found.partition(b"\r\n\r\n")[2]

    def serves(self) -> bool:
        """Whether its page gets what it asks for."""
        status, body = self.ask(f"{self.path}about")
        return status == 200 and b"release" in body


@pytest.fixture(scope="module")
def page(node: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    runtime = tmp_path_factory.mktemp("runtime")
    (runtime / "package.json").write_text(json.dumps({"version": "1.2.3"}), encoding="utf-8")
    (runtime / "dist" / "folder").mkdir(parents=True)
    (runtime / "dist" / "ort.mjs").write_text("export {};", encoding="utf-8")
    program = SERVER.replace("agent:", AGENTS.as_uri() + "/")
    command = [node, "--input-type=module", "-e", program, str(runtime)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield Page(process.stdout.readline().decode().strip())
        assert process.poll() is None  # whatever the tests have sent


def test_the_page_gets_its_files(page: Page) -> None:
    assert page.serves()
    assert b"<html" in page.ask(page.path)[1].lower()
    assert page.ask(f"{page.path}dist/ort.mjs")[1].endswith(b"export {};")
    assert page.ask(f"{page.path}agent/page.mjs", headers={"Origin": f"http://{page.host}"})[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "//",
        "///",
        "/",
        "",
        "*",
        "http://[",
        "http://x/",
        "/..",
        "/%",
        "/%ff",
        "//x:99999/",
        "/\\",
        "?",
        "#",
        "/__proto__/",
    ],
)
def test_without_the_secret_there_is_nothing(page: Page, path: str) -> None:
    found = page.send(f"GET {path} HTTP/1.1\r\nHost: {page.host}\r\nConnection: close\r\n\r\n".encode())
    assert found.split()[1:2] in ([b"403"], [b"400"])
    assert page.serves()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_origin_gets_nothing_even_with_the_secret(
    page: Page, headers: dict[str, str]
) -> None:
    for method in ("GET", "POST"):
        assert page.ask(f"{page.path}about", method, headers=headers)[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        *(
            "dist/",
            "dist/folder",
            "dist/..",
            "dist/.",
            "dist/none.mjs",
            "dist/%2e%2e",
            "dist/..%2fpackage.json",
        ),
        *(
            "agent/",
            "agent/..",
            "agent/../../harness/__init__.py",
            "agent//",
            "agent/page.mjs/",
            "agent/a\\b",
        ),
        *("__proto__", "constructor/x", "toString", "dist/" + "x" * 300, "dist/page.mjs%00", "dist/\u00e9"),
    ],
)
def test_a_file_that_is_none_of_the_page_is_not_found(page: Page, path: str) -> None:
    assert page.ask(f"{page.path}{path}")[0] in (400, 404)
    assert page.serves()


@pytest.mark.parametrize(
    "body", [b"", b"1234567", bytes(7), b"\xff" * 8, b"\x05\0\0\0\0\0\0\0abc", b"\0" * 9]
)
def test_a_message_that_is_none_is_refused(page: Page, body: bytes) -> None:
    assert page.ask(f"{page.path}give", "POST", body)[0] == 400
    assert page.ask(f"{page.path}none", "POST", body)[0] == 404
    assert page.ask(f"{page.path}__proto__", "POST", body)[0] == 404


def test_a_message_arrives(page: Page) -> None:
    assert page.ask(f"{page.path}give", "POST", b"\x02\0\0\0\x01\0\0\0[]x") == (200, b"null")
    assert b'"[]"' in page.ask(f"{page.path}told", "POST")[1]


def test_no_bytes_end_the_server(page: Page) -> None:
    chance = random.Random(46)  # noqa: S311 - no secret
    valid = f"GET {page.path}about HTTP/1.1\r\nHost: {page.host}\r\nContent-Length: 3\r\n\r\nabc".encode()
    post = valid.replace(b"GET", b"POST").replace(b"about", b"give")
    for number in range(400):
        data = bytearray((valid, post)[number % 2])
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(data))
            piece = chance.choice(
                [b"/", b"//", b"\0", b"%", b":", b"\r\n", b"\xff", b"[", chance.randbytes(4)]
            )
            data[at : at + chance.randint(0, 6)] = piece
        page.send(bytes(data[: chance.randint(1, len(data))] if number % 5 == 0 else data))
    for method in (b"CONNECT", b"TRACE", b"OPTIONS", b"HEAD", b"PUT", b"PRI", b"X" * 5000):
        page.send(
            method + b" " + page.path.encode() + b" HTTP/1.1\r\nHost: " + page.host.encode() + b"\r\n\r\n"
        )
    page.send(valid.replace(b"\r\n\r\n", b"\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"))
    assert page.serves()
