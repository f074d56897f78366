"""Verification: which draft tokens are accepted, sampling, and draft trees."""
