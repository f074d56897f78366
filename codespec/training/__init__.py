"""Parts that train a small model with torch: network, loss, optimisers, GGUF export, text to learn
from. `codespec.distill` uses them for users' draft models, `codespec.train` for the bundled ones.
"""
