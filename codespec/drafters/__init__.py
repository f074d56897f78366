"""Drafters: sources of drafts, their acceptance probabilities, and how much of a draft pays."""
