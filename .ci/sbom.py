"""`make sbom`: all parts of codespec in CycloneDX's form, dist/codespec-VERSION.cdx.json.

Python packages by the locked files, npm packages of the extension by its own, llama.cpp by the
archive that it is built from, and what lies in this repository. Nothing is asked over a network.
"""

import base64
import hashlib
import json
import re
import sys
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from codespec.system import llama_build

ENTRY = re.compile(r"^([\w.-]+)==(\S+)", re.M)
Part = dict[str, Any]


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    file = dist / f"codespec-{project['version']}.cdx.json"
    file.write_text(json.dumps(document(project), indent=1) + "\n", "utf-8")
    print(f"{file.relative_to(ROOT)}: {len(document(project)['components'])} parts")


def document(project: dict[str, Any]) -> Part:
    """The list. project: the table of that name in pyproject.toml."""
    parts = [*llama(), *python(project), *npm(), *inside()]
    own = {
        "type": "application",
        "bom-ref": "codespec",
        "name": "codespec",
        "version": project["version"],
        "licenses": [{"expression": project["license"]}],
    }
    content = json.dumps([own, parts], sort_keys=True)
    needed = [part["bom-ref"] for part in parts if part["scope"] == "required"]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}",
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
        "dependencies": [{"ref": "codespec", "dependsOn": needed}],
    }


def component(kind: str, name: str, version: str, purl: str, *, required: bool) -> Part:
    scope = "required" if required else "excluded"
    ref = purl or f"codespec/{name}"
    found = {"type": kind, "bom-ref": ref, "name": name, "version": version, "scope": scope}
    return found | ({"purl": purl} if purl else {})


def python(project: dict[str, Any]) -> list[Part]:
    """Packages of users, then what developers need besides: tests, training, torch."""
    found: dict[str, Part] = {}
    torch = next(s for s in project["optional-dependencies"]["train"] if s.startswith("torch"))
    files = {True: ".ci/requirements.txt", False: ".ci/requirements-dev.txt"}
    for required, file in files.items():
        text = (ROOT / file).read_text("utf-8") + ("" if required else torch)
        for name, version in ENTRY.findall(text):
            purl = f"pkg:pypi/{name.lower()}@{version}"
            part = component("library", name, version, purl, required=required)
            licence = licence_of(name)
            if licence:
                part["licenses"] = [{"license": {"name": licence}}]
            found.setdefault(purl, part)
    return list(found.values())


def licence_of(name: str) -> str:
    """A package's own word on its licence, where it is installed here; "" else."""
    try:
        said = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    given = said.get("License-Expression") or said.get("License") or ""
    return given if given and len(given.splitlines()) == 1 else ""


def npm() -> list[Part]:
    """Packages of the extension: those in it, and those that build it."""
    lock = ROOT / "editor-plugins" / "vscode" / "package-lock.json"
    found: dict[str, Part] = {}
    for path, entry in json.loads(lock.read_text("utf-8"))["packages"].items():
        if not path or "version" not in entry:
            continue
        name = path.rpartition("node_modules/")[2]
        purl = f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}"
        part = component(
            "library", name, entry["version"], purl, required=not entry.get("dev", False)
        )
        digest = entry.get("integrity", "").removeprefix("sha512-")
        if digest:
            part["hashes"] = [{"alg": "SHA-512", "content": base64.b64decode(digest).hex()}]
        if isinstance(entry.get("license"), str):
            part["licenses"] = [{"license": {"name": entry["license"]}}]
        found.setdefault(purl, part)
    return list(found.values())


def llama() -> list[Part]:
    """llama.cpp and the package that it is built as, by the archive that both lie in."""
    version = llama_build.VERSION
    hashes = [{"alg": "SHA-256", "content": llama_build.SHA256}]
    licences = [{"license": {"id": "MIT"}}]
    purl = f"pkg:pypi/{llama_build.PACKAGE}@{version}"
    package = component("library", llama_build.PACKAGE, version, purl, required=True)
    name = "llama.cpp"
    inner = component(
        "library", name, f"that of {llama_build.PACKAGE} {version}", "", required=True
    )
    return [part | {"hashes": hashes, "licenses": licences} for part in (package, inner)]


def inside() -> list[Part]:
    """Rules and models in this repository, by their bytes."""
    rules = ROOT / "codespec" / "rules" / "secrets" / "gitleaks.toml"
    part = component("data", "gitleaks' rules", digest(rules)[:12], "", required=True)
    part["licenses"] = [{"license": {"id": "MIT"}}]
    parts = [part | {"hashes": [{"alg": "SHA-256", "content": digest(rules)}]}]
    for model in sorted((ROOT / "codespec" / "models" / "bundled").glob("*.gguf")):
        sha = digest(model)
        part = component("machine-learning-model", model.name, sha[:12], "", required=True)
        part["licenses"] = [{"license": {"id": "Apache-2.0"}}]
        parts.append(part | {"hashes": [{"alg": "SHA-256", "content": sha}]})
    return parts


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
