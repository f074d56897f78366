"""The text index in C++: numbers, bytes and spans, no knowledge of files or models above it.

`SuffixAutomaton` follows an open document edit by edit; `Segment` is the frozen, memory-mapped
form for everything else; both return a `Proposal`. `Sources` asks all that serve a request, as
`Boundary` has it where the cursor stands inside a token, and `Planner` weighs what they offer and
chooses the draft. `Batch` and `Rows` are what goes into a pass and comes out of it. The contracts
stand in `_core.pyi`. `KERNELS` is a library of its own.
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
    DamagedSegmentError,
    Drafting,
    Encoder,
    Ends,
    LlamaContext,
    Planner,
    Proposal,
    Rows,
    Segment,
    Sources,
    Stretch,
    SuffixAutomaton,
    Vocabulary,
    WordTable,
    accepts,
    build_segment,
    common_prefix,
    map_file,
)

KERNELS = Path(_core.__file__).with_name("libcodespec_kernels.so")
"""Products of matrices for llama.cpp (kernels/); not there on every platform."""

__all__ = [
    "ENDS_STRETCH",
    "ENDS_TEXT",
    "KERNELS",
    "MAX_DEPTH",
    "MAX_WORD_BYTES",
    "STEP_COUNTER",
    "Batch",
    "Boundary",
    "DamagedSegmentError",
    "Drafting",
    "Encoder",
    "Ends",
    "LlamaContext",
    "Planner",
    "Proposal",
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
    "map_file",
]
