"""Sources of lookup drafts: this document, the workspace, its other open documents."""

from __future__ import annotations

from typing import TypeAlias

from codespec.native import SuffixAutomaton
from codespec.types import Source

PREFIX = Source.register("prefix")  # the document, before the cursor
SUFFIX = Source.register("suffix")  # the document, after the cursor
REPOSITORY = Source.register("repository")  # other files of the workspace
EDITS = Source.register("edits")  # lines that the user changed or deleted lately
BUFFERS = Source.register("buffers")  # other open documents of the workspace
ANSWERS = Source.register("answers")  # past output of the target in this document

Neighbour: TypeAlias = tuple[Source, SuffixAutomaton]
