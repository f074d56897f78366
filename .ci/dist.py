"""`make dist`: source archive and wheel in dist/, the wheel built from the archive alone."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
SDIST = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"

sys.path.insert(0, str(ROOT))
from codespec.errors import CodespecError
from codespec.system.llama_build import with_progress


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    (ROOT / "build").mkdir(exist_ok=True)
    print("packing the sources", flush=True)
    done = subprocess.run([sys.executable, "-c", SDIST, str(DIST)], cwd=ROOT, capture_output=True)
    if done.returncode:
        sys.exit(done.stderr.decode(errors="replace"))
    archive = next(DIST.glob("*.tar.gz"))
    with tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        source = next(Path(scratch).iterdir())
        print("building the wheel from them", flush=True)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with_progress(
            [
                *(sys.executable, "-m", "pip", "wheel", "--verbose", "--no-deps"),
                *("--no-build-isolation", "--wheel-dir", str(DIST), str(source)),
            ],
            "the wheel",
            ROOT / "build" / "dist.log",
            lambda line: print(line, flush=True),
            env=dict(os.environ, PATH=path),
            cwd=Path(scratch),
        )
    wheel = next(DIST.glob("*.whl"))
    print(f"{archive.relative_to(ROOT)}: {mb(archive.stat().st_size)}")
    print(f"{wheel.relative_to(ROOT)}: {mb(wheel.stat().st_size)}, of which")
    with zipfile.ZipFile(wheel) as packed:
        sizes: dict[str, int] = {}
        for entry in packed.infolist():
            kind = {".gguf": "models", ".so": "native code"}.get(Path(entry.filename).suffix)
            kind = kind or "everything else"
            sizes[kind] = sizes.get(kind, 0) + entry.compress_size
    for kind, size in sorted(sizes.items(), key=lambda item: -item[1]):
        print(f"  {kind}: {mb(size)}")


def mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


if __name__ == "__main__":
    try:
        main()
    except CodespecError as e:
        sys.exit(f"{e.message}\n{e.hint}")
    except KeyboardInterrupt:
        sys.exit(130)
