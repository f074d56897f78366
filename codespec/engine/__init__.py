"""One request from context to text: the decoding loop and what surrounds it."""
