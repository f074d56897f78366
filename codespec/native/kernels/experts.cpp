#include "experts.h"

#include <cstring>
#include <vector>

namespace codespec {
namespace {

constexpr std::int64_t kTogether = 128;  // columns that the L2 cache holds beside weights

}  // namespace

void multiply_expert(Kernels::Kernel kernel, std::int64_t min_rows, Product p,
                     const Routes& routes) {
  // The kernel computes this thread's whole share, so that its rows are known.
  const std::int64_t n_units = p.n_rows / min_rows;
  const std::int64_t first = min_rows * (n_units * p.thread / p.n_threads);
  const std::int64_t last =
      p.thread + 1 == p.n_threads ? p.n_rows : min_rows * (n_units * (p.thread + 1) / p.n_threads);
  if (first == last) return;
  const auto state = [&, states = p.states](std::int64_t i) {
    const auto [slot, token] = routes.places[i];
    return states + (token * routes.n_slots + slot % routes.n_slots) * p.states_stride;
  };
  const auto result = [&, out = p.out](std::int64_t i) {
    const auto [slot, token] = routes.places[i];
    return out + slot * routes.slot_stride + token * routes.token_stride + first;
  };
  p.thread = 0;
  p.n_threads = 1;
  p.weights += first * p.weights_stride;
  p.n_rows = last - first;
  if (routes.next != nullptr) {
    p.end = p.weights + p.n_rows * p.weights_stride;
    p.jump = routes.next + first * p.weights_stride - p.end;
  }
  if (routes.n == 1) {
    p.n_columns = 1;
    p.states = state(0);
    p.out = result(0);
    kernel(p);
    return;
  }
  static thread_local std::vector<std::byte> columns;
  static thread_local std::vector<float> results;
  const auto n_bytes = static_cast<std::size_t>(p.states_stride);
  const auto n_rows = static_cast<std::size_t>(p.n_rows);
  p.out_stride = p.n_rows;
  const std::int64_t n_parts = (routes.n + kTogether - 1) / kTogether;
  for (std::int64_t part = 0; part < n_parts; ++part) {
    const std::int64_t begin = routes.n * part / n_parts, end = routes.n * (part + 1) / n_parts;
    p.n_columns = end - begin;
    const auto n = static_cast<std::size_t>(p.n_columns);
    if (columns.size() < n * n_bytes) columns.resize(n * n_bytes);
    if (results.size() < n * n_rows) results.resize(n * n_rows);
    for (std::size_t j = 0; j < n; ++j) {
      std::memcpy(&columns[j * n_bytes], state(begin + static_cast<std::int64_t>(j)), n_bytes);
    }
    p.states = columns.data();
    p.out = results.data();
    kernel(p);
    for (std::size_t j = 0; j < n; ++j) {
      std::memcpy(result(begin + static_cast<std::int64_t>(j)), &results[j * n_rows],
                  n_rows * sizeof(float));
    }
  }
}

}  // namespace codespec
