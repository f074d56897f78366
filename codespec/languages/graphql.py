"""GraphQL; codespec has no grammar of it."""

from __future__ import annotations

from codespec.languages.base import DOUBLE, HASH, RAW_TRIPLE, Language

LANGUAGE = Language(
    name="graphql",
    extensions=(".graphql", ".gql", ".graphqls"),
    ids=("graphql",),
    line_comments=(HASH,),
    strings=(RAW_TRIPLE, DOUBLE),
    documentation=("#", '"""'),
    docstring='"""',
    conditional=False,
)
