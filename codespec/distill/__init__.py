"""A draft model distilled from a target's next-token distributions on a workspace's own files."""
