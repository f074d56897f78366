// Shared by the Python bindings: conversion of arrays, and limits. The contract is _core.pyi.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "segment.h"
#include "tokens.h"

namespace codespec {

namespace nb = nanobind;

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using TokenArray = Vector<Token>;
using AnyVector = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> as_span(const Vector<T>& v) {
  return {v.data(), v.size()};
}

inline std::string_view as_view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

template <typename T>
auto as_numpy(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner);
}

inline auto as_numpy(Tokens tokens) {  // a copy
  return as_numpy(std::vector<Token>(tokens.begin(), tokens.end()));
}

inline Allowed as_allowed(const std::optional<TokenArray>& ids) {
  return ids ? Allowed(as_span(*ids)) : std::nullopt;
}

inline void check_limits(int n_max, int min_length) {
  if (n_max < 0) throw nb::value_error("n_max must not be negative");
  if (min_length < 1) throw nb::value_error("min_length must be at least 1");
}

inline void check_costs(std::span<const double> costs) {
  if (costs.empty()) throw nb::value_error("costs must not be empty");
  for (const double cost : costs) {
    if (!(cost > 0) || std::isinf(cost)) throw nb::value_error("costs must be positive");
  }
}

template <typename F>
F pointer(std::uintptr_t address) {
  if (address == 0) throw nb::value_error("an address must not be 0");
  return reinterpret_cast<F>(address);
}

// Raises TypeError and ValueError for what does not fit the segment.
Segment::Dead as_dead(const std::optional<AnyVector>& dead, const Segment& segment);

// Lexical kinds by token. Raises ValueError for kinds or a number of sources out of range.
std::shared_ptr<const std::vector<std::uint8_t>> as_classes(const Vector<std::uint8_t>& classes,
                                                            int n_sources);

void bind_automaton(nb::module_& m);
void bind_batch(nb::module_& m);
void bind_boundary(nb::module_& m);
void bind_segment(nb::module_& m);
void bind_serving(nb::module_& m);
void bind_words(nb::module_& m);
void bind_planner(nb::module_& m);
void bind_sources(nb::module_& m);
void bind_stretch(nb::module_& m);

}  // namespace codespec
