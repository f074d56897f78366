"""Attacks and failures, and all that they do not do."""
