"""Records of how suggestions serve their user, kept on this machine alone."""
