"""A request from its document to a suggestion: the way through the rooms, and the decoding loop."""
