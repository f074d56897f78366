"""Drafts for engines that serve many at once: rows of token ids in, chains of token ids out.

An engine hands over the rows of its step (`rows`); a guard (`row_guard`) asks a drafter in a thread
of its own, within a time limit, and lets nothing but sound ids through; `lookup_rows` drafts from
the text of each request and of its workspace, all rows in one native call. No engine is imported
but by the adapter that is named after it.
"""
