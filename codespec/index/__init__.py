"""The workspace index: which text of the workspace is drafted from, how it is kept on disk, how it
is queried.

A file's way into the index: `walk.scan` finds it where `rules` allow it, `selection` chooses the
parts worth learning, `syntax.text` and the model's tokenizer turn them into tokens, `build` writes
these into segments of `store`, and `reader` drafts from the segments. `documents.live` does the
same for the open document, in memory.

Nothing here knows models, drafters or editors.
"""
