"""llama.cpp through llama-cpp-python's low-level API: the only room that imports llama_cpp."""

from codespec.backends.llama.grammar import GrammarMask
from codespec.backends.llama.loader import LoadedModel, build
from codespec.backends.llama.model import LlamaModel, load_model
from codespec.backends.llama.target import LlamaTarget
from codespec.backends.llama.tokenizer import LlamaTokenizer

__all__ = [
    "GrammarMask",
    "LlamaModel",
    "LlamaTarget",
    "LlamaTokenizer",
    "LoadedModel",
    "build",
    "load_model",
]
