"""Code completion on the user's own machine: the repository drafts, the model verifies."""

__version__ = "0.1.0"
