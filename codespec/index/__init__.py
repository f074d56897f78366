"""The workspace as drafts: what of it is indexed, how it is kept on disk, how it is asked.

The way of a file: `scan` finds it where `ignore` allows, `parse` selects what is worth learning,
`text` and the model's tokenizer make tokens of it, `build` puts them into segments of `store`, and
`reader` drafts from those. `live` does the same for the open document, in memory.

Nothing here knows models, drafters or editors.
"""
