"""llama.cpp through llama-cpp-python's low-level API: the only room that imports llama_cpp."""

from codespec.backends.llama.grammar import GrammarMask
from codespec.backends.llama.loader import LoadedModel, build, load_model
from codespec.backends.llama.target import LlamaTarget, default_threads
from codespec.backends.llama.tokenizer import LlamaTokenizer

__all__ = [
    "GrammarMask",
    "LlamaTarget",
    "LlamaTokenizer",
    "LoadedModel",
    "build",
    "default_threads",
    "load_model",
]
