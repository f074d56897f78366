"""Measurements on a GPU: costs of passes for models of the usual shapes, and what drafting gives.

On a machine with a network, `pack.py` gathers what is needed; on the one with the GPU, `build.py`
makes an environment from that alone; `python -m codespec_bench.gpu` measures. Where codespec is
installed with a GPU backend, as `make run` does on a Mac, the last one suffices.
"""
