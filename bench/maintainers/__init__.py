"""Benchmarks that only maintainers run, from a checkout: the wheel is without them, and no other
part of the benchmarks imports them.
"""
