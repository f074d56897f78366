"""Formats of next-edit models: their prompts, and their answers as edits of lines."""
