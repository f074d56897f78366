"""Prompt lookup drafting in C++: numbers, bytes and spans, no knowledge of files or models above
it.

`SuffixAutomaton` follows an open document edit by edit; `Segment` is the frozen, memory-mapped
index of other files; both draft a `Proposal`. `Sources` looks a request's context up in all of
them, through `Boundary` where the cursor stands inside a token, and `Planner` merges the offers and
chooses the draft. `RowThreads` does both for all rows of an engine's step: `DraftedRequest`s, which
share the `Calibration` of their workspace. `Batch` and `Rows` are the input and output of a pass.
The contracts stand in `_core.pyi`. `KERNELS` is a library of its own.
"""

from pathlib import Path

from codespec.native import _core
from codespec.native._core import (
    ENDS_STRETCH,
    ENDS_TEXT,
    MAX_DEPTH,
    MAX_WORD_BYTES,
    STEP_COUNTER,
    Batch,
    Boundary,
    Calibration,
    DamagedSegmentError,
    DraftedRequest,
    Drafting,
    Encoder,
    Ends,
    LlamaContext,
    Planner,
    Proposal,
    Rows,
    RowThreads,
    Segment,
    Sources,
    Stretch,
    SuffixAutomaton,
    Vocabulary,
    WordTable,
    accepts,
    build_segment,
    common_prefix,
    log_probability,
    map_file,
)

KERNELS = Path(_core.__file__).with_name("libcodespec_kernels.so")
"""Library of CPU kernels for llama.cpp (kernels/); missing on some platforms."""

__all__ = [
    "ENDS_STRETCH",
    "ENDS_TEXT",
    "KERNELS",
    "MAX_DEPTH",
    "MAX_WORD_BYTES",
    "STEP_COUNTER",
    "Batch",
    "Boundary",
    "Calibration",
    "DamagedSegmentError",
    "DraftedRequest",
    "Drafting",
    "Encoder",
    "Ends",
    "LlamaContext",
    "Planner",
    "Proposal",
    "RowThreads",
    "Rows",
    "Segment",
    "Sources",
    "Stretch",
    "SuffixAutomaton",
    "Vocabulary",
    "WordTable",
    "accepts",
    "build_segment",
    "common_prefix",
    "log_probability",
    "map_file",
]
