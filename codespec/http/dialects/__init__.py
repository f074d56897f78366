"""Dialects of HTTP: each API is one file, and a line in `registry`."""
