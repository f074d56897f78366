"""Trial of a model file in a process of its own, as a damaged one may crash llama.cpp."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from codespec.backends.llama.model import load_model
from codespec.errors import ModelError
from codespec.system.processes import how_it_ended, module_command


def try_model(path: Path) -> None:
    """Load a model but its weights, which may need more memory than is free now.

    Cost: half a second, most of it to start a process. Raises: ModelError where it fails.
    """
    command = module_command(__name__, str(path))
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode == 0:
        return
    if done.stdout:
        raise ModelError(*json.loads(done.stdout))
    said = done.stderr.decode("utf-8", "replace").splitlines()
    reasons = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
    why = reasons[-1] if reasons else f"what tried to load it {how_it_ended(done.returncode)}"
    raise ModelError(f"{path}: {why}", "Get the file again, or choose another model.")


def main() -> int:
    try:
        load_model(Path(sys.argv[1]), weights=False).close()
    except ModelError as e:
        print(json.dumps((e.message, e.hint)))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
