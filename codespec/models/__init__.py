"""Which model files to use: the user's choice, or the bundled pair."""
