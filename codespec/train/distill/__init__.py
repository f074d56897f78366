"""A draft model distilled from a target's own laws on a workspace's own files."""
