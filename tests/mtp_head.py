"""Weights for which a model's output is known, and the drafts of its MTP head."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.backends.llama import nextn
from tests.zoo import Weights
from tests.zoo.parts import WIDTH

FAMILIES = sorted(nextn.FAMILIES)
NAMES = ("argparse.py", "tarfile.py")
TEXTS = [(Path(sysconfig.get_paths()["stdlib"]) / name).read_text() for name in NAMES]


def answering(half: str) -> Weights:
    """Weights with which what follows depends on the last token alone: layers add nothing. The own
    layer looks at half of what it is given: "token", so that it says what the target will say; or
    "state", so that it says what the target said before that token."""

    def weights(name: str, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        if re.search(r"attn_output|ssm_out|ffn_down", name):
            return np.zeros_like(values)
        if name.endswith("nextn.eh_proj.weight"):
            eye, nothing = np.eye(WIDTH), np.zeros((WIDTH, WIDTH))
            halves = [eye, nothing] if half == "token" else [nothing, eye]
            return np.concatenate(halves, axis=1).astype(np.float32)
        if re.search(r"output_norm|enorm|hnorm|head_norm", name):
            return np.ones_like(values)
        return values

    return weights
