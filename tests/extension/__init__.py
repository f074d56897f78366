"""Additions as a contributor makes them: each test adds one thing, in one file and at most one line
of registration, and uses it end to end. Examples to begin from: their types are checked as strictly
as the product's."""
