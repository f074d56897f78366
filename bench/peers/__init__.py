"""`codespec bench peers`: the same model file, the same requests, every way to decode them that
people use, side by side in one run."""
