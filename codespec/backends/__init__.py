"""Computing models behind one contract: llama.cpp for real, a deterministic fake for proofs."""
