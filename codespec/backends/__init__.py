"""Backends compute models behind one contract: llama.cpp, and a deterministic fake for tests."""
