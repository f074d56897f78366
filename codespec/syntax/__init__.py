"""Syntax of source text: trees, a lexer for where there is none, markup, symbols and names."""
