"""Rules on files that codespec must not use: ignore rules, secrets, and a workspace's
restrictions."""
