"""`make lock`: the packages of the environments with their hashes, from the versions in
constraints.txt.

torch and what it alone needs are left out: which build of it suits a machine, pip decides.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
CI = ROOT / ".ci"
BUILD_TOOLS = ["cmake", "ninja", "scikit-build-core"]
HEAD = "# Made by `make lock` from pyproject.toml and .ci/constraints.txt.\n"
ENTRY = re.compile(r"^(?=\S)(?!#)", re.M)


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    users = [*project["dependencies"], *BUILD_TOOLS, "nanobind"]
    more = [line for name in ("dev", "report", "train") for line in extras[name]]
    developers = users + [line for line in more if not re.match(r"torch\b", line)]
    of_users = locked(users)
    write(ROOT / "codespec" / "system" / "build-tools.txt", locked(BUILD_TOOLS))
    write(CI / "requirements.txt", of_users)
    write(CI / "requirements-dev.txt", [e for e in locked(developers) if e not in of_users])
    write(CI / "requirements-docs.txt", locked(["zensical"], oldest="3.11.5"))


def locked(wanted: list[str], oldest: str = "3.10") -> list[str]:
    """An entry for each package that is needed, on any system, from the oldest Python on."""
    with tempfile.TemporaryDirectory() as scratch:
        needed = Path(scratch, "needed.in")
        needed.write_text("\n".join(wanted) + "\n")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal"),
                *("--python-version", oldest, "--no-python-downloads", "--generate-hashes"),
                *("--no-header", "--no-annotate", "--no-emit-index-url", "--no-config"),
                *("--constraint", str(CI / "constraints.txt"), str(needed)),
            ],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    entries = [entry for entry in ENTRY.split(done.stdout) if entry.strip()]
    entries = [entry for entry in entries if "emscripten" not in entry]
    pins = {line.split()[0].lower().replace("_", "-") for line in constraints()}
    for entry in entries:
        if entry.split()[0] not in pins:
            sys.exit(f"add to .ci/constraints.txt, with the newest version: {entry.split()[0]}")
    return entries


def constraints() -> list[str]:
    lines = (CI / "constraints.txt").read_text("utf-8").splitlines()
    return [line.replace(";", " ;") for line in lines if line and not line.startswith("#")]


def write(path: Path, entries: list[str]) -> None:
    path.write_text(HEAD + "".join(entries), "utf-8")
    print(f"{path.relative_to(ROOT)}: {len(entries)} packages")


if __name__ == "__main__":
    main()
