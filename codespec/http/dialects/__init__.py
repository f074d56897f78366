"""Dialects of HTTP: each API is one file with its routes, and a line in `registry`."""
