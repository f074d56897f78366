"""Training of the bundled models, for maintainers, from a checkout: corpus, tokenizer, FIM
transform, training loop, evaluation, model card. No other part of codespec imports it, and the
wheel is without it.
"""
