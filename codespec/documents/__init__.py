"""Open documents: their tokens and suffix automata, recent edits, past output of the target."""
