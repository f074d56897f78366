"""Programs before several engines, installed once a machine: HAProxy as docs/team has it, and
vllm-router."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.editors import debian, install

ROOT = Path(__file__).parents[2]
HAPROXY_FILE = ROOT / "docs" / "team" / "haproxy.cfg"
VLLM_ROUTER = "vllm-router==0.1.17"
VLLM_ROUTER_OPTIONS = (
    *("--policy", "consistent_hash", "--cb-failure-threshold", "1"),
    *("--retry-max-retries", "3", "--retry-initial-backoff-ms", "50"),
    *("--health-check-interval-secs", "1", "--health-check-timeout-secs", "2"),
    *("--health-failure-threshold", "2", "--health-success-threshold", "1"),
    *("--cb-timeout-duration-secs", "2", "--request-timeout-secs", "30"),
)
"""Its options, those of docs/team-operation.md."""
_READY_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def haproxy() -> tuple[str, dict[str, str]]:
    """(program, environment): this machine's, or Debian's in the cache folder. Raises:
    install.Unavailable."""
    if found := shutil.which("haproxy"):
        return found, dict(os.environ)
    folder = install.cached("haproxy", debian, lambda into: debian.unpack(["haproxy"], into))
    environment = {**os.environ, "LD_LIBRARY_PATH": debian.library_path(folder)}
    return str(folder / "usr" / "sbin" / "haproxy"), environment


def haproxy_file(ports: Sequence[int], listens: str) -> str:
    """The text of docs/team/haproxy.cfg for these engines. listens: its line "bind"."""
    text = HAPROXY_FILE.read_text()
    text = re.sub(r"(?m)^    (user|group) .*\n", "", text)  # it is not started by root
    text = re.sub(r"(?m)^    bind .*$", f"    bind {listens}", text)
    places = re.findall(r"(?m)^    server \S+ (\S+:\d+)", text)
    assert len(places) == 6
    assert places[:3] == places[3:]
    for place, port in zip(places[:3], [*ports, 0, 0], strict=False):
        if port:
            text = text.replace(place, f"127.0.0.1:{port}")
        else:
            text = re.sub(rf"(?m)^    server \S+ {place}.*\n", "", text)
    return text


def check_haproxy(file: Path) -> str:
    """Check a file. Returns: the output. Raises: AssertionError where HAProxy refuses it."""
    program, environment = haproxy()
    done = subprocess.run(
        [program, "-c", "-f", str(file)], env=environment, capture_output=True, text=True
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def vllm_router() -> str:
    """The program, in an environment of its own. Raises: install.Unavailable."""

    def build(folder: Path) -> None:
        install.run([sys.executable, "-m", "venv", "--clear", str(folder)])
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--quiet", "install"]
        install.run([*pip, VLLM_ROUTER])

    return str(install.cached("vllm-router", VLLM_ROUTER, build) / "bin" / "vllm-router")


@contextmanager
def routed(
    kind: str, ports: Sequence[int], folder: Path, key: str = "", certificate: Path | None = None
) -> Generator[str]:
    """Run a router of this kind before engines, and yield its URL. folder: of its files. key: that
    engines want. certificate: see `certificate_in`; HAProxy then answers by https, as localhost."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    trust = None
    environment: Mapping[str, str] = os.environ
    if kind == "haproxy":
        file = folder / "haproxy.cfg"
        listens = f"127.0.0.1:{port}"
        if certificate is not None:
            url, listens = f"https://localhost:{port}", _with_tls(listens, certificate)
            trust = ssl.create_default_context(cafile=certificate)
        file.write_text(haproxy_file(ports, listens))
        program, environment = haproxy()
        command = [program, "-db", "-f", str(file)]
    else:
        urls = [f"http://127.0.0.1:{engine}" for engine in ports]
        command = [
            *(vllm_router(), "--host", "127.0.0.1", "--port", str(port)),
            *("--prometheus-port", str(free_port()), "--worker-urls", *urls),
            *("--worker-startup-check-interval", "1", *VLLM_ROUTER_OPTIONS),
        ]
    with (folder / f"{kind}.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            _wait(f"{url}/v1/models", process, key, trust)
            yield url
        finally:
            process.terminate()
            process.wait()


def _with_tls(listens: str, certificate: Path) -> str:
    """The line "bind" of docs/team/haproxy.cfg, for another address and certificate."""
    found = re.search(r"(?m)^    bind \S+ (ssl crt) \S+ (.*)$", HAPROXY_FILE.read_text())
    assert found is not None
    return f"{listens} {found[1]} {certificate} {found[2]}"


def certificate_in(folder: Path) -> Path:
    """A certificate of localhost and its key in one file, as HAProxy reads them. Raises:
    install.Unavailable."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise install.Unavailable("openssl makes the certificate")
    key, certificate, both = folder / "key.pem", folder / "cert.pem", folder / "team.pem"
    made = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost"
    named = ("-addext", "subjectAltName=DNS:localhost")
    command = [openssl, *made.split(), *named, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    both.write_text(certificate.read_text() + key.read_text())
    return both


def _wait(
    url: str, process: subprocess.Popen[bytes], key: str, trust: ssl.SSLContext | None
) -> None:
    until = time.monotonic() + _READY_S
    while True:
        assert process.poll() is None, "the router has ended: see its log"
        try:
            asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
            with urllib.request.urlopen(asked, timeout=5, context=trust):
                return
        except (OSError, urllib.error.URLError):
            assert time.monotonic() < until
            time.sleep(0.1)
