"""Target models behind one Protocol: llama.cpp for real, a deterministic fake for proofs."""
