"""Weights of `suggest.eagerness`, by kind of place and input: bench/maintainers/eagerness.py."""

BY_LOG_PROBS = {
    "comment": -0.38, "before_closing": -0.45, "within_line": -0.86, "empty_line": -0.57,
    "below": 0.37, "lines": 0.94, "own": 2.8,
}  # fmt: skip
BY_LENGTH = {
    "comment": -1.69, "before_closing": -1.68, "within_line": -1.57, "empty_line": -1.81,
    "below": -1.7, "lines": 0.18, "length": 1.5, "length_squared": -2.19,
}  # fmt: skip
