"""Training of the bundled models: corpus, tokenizer, FIM transform, training loop, evaluation, GGUF
export.
"""
