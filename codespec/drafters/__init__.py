"""Where drafts come from, how likely they are, and how much of them is worth verifying."""
