"""Model files: the bundled pair, the user's list, downloads, distilled drafts, and which of them
the settings lead to."""
