// Python bindings of a pass: its batch and its logits.
#include <limits>
#include <stdexcept>
#include <utility>

#include "batch.h"
#include "bindings.h"
#include "softmax.h"

using namespace nanobind::literals;

namespace codespec {
namespace {

template <typename T>
using Cells = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Row = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Keeps the arrays alive.
struct PyBatch {
  Cells<Token> tokens;
  Cells<std::int32_t> positions;
  Cells<std::int8_t> wanted;

  void lay(const TokenArray& committed, const TokenArray& chain, std::int64_t start, bool want) {
    const std::size_t n = committed.size() + chain.size();
    if (n > std::min({tokens.size(), positions.size(), wanted.size()})) {
      throw nb::value_error("more tokens than the batch has cells");
    }
    constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
    if (start < 0 || start > kMost - static_cast<std::int64_t>(n)) {
      throw nb::value_error("start must be a position");
    }
    Batch{{tokens.data(), tokens.size()},
          {positions.data(), positions.size()},
          {wanted.data(), wanted.size()}}
        .lay(as_span(committed), as_span(chain), static_cast<std::int32_t>(start), want);
  }
};

// A view of each row; `rows` keeps the numbers.
struct Rows {
  Matrix logits;

  std::span<const float> at(std::size_t i) const {
    if (i >= logits.shape(0)) throw nb::index_error("there is no such row");
    return {logits.data() + i * logits.shape(1), logits.shape(1)};
  }
};

}  // namespace

void bind_batch(nb::module_& m) {
  nb::class_<PyBatch>(m, "Batch", nb::is_final())
      .def(nb::new_(
               [](Cells<Token> tokens, Cells<std::int32_t> positions, Cells<std::int8_t> wanted) {
                 return PyBatch{std::move(tokens), std::move(positions), std::move(wanted)};
               }),
           "tokens"_a.noconvert(), "positions"_a.noconvert(), "wanted"_a.noconvert())
      .def("lay", &PyBatch::lay, "committed"_a.noconvert(), "chain"_a.noconvert(), "start"_a,
           "want"_a);
  nb::class_<Rows>(m, "Rows", nb::is_final())
      .def(nb::new_([](Matrix logits) { return Rows{std::move(logits)}; }), "logits"_a.noconvert())
      .def(
          "row",
          [](const Rows& self, std::size_t i) {
            const auto row = self.at(i);
            return nb::ndarray<nb::numpy, const float, nb::ndim<1>>(row.data(), {row.size()});
          },
          "i"_a, nb::rv_policy::reference_internal)
      .def("argmax", [](const Rows& self, std::size_t i) { return argmax(self.at(i)); }, "i"_a);
  m.def(
      "log_probability",
      [](const Row& row, std::size_t token) {
        if (token >= row.size()) throw nb::index_error("there is no such token");
        const std::span<const float> all{row.data(), row.size()};
        return log_probability(all, token, largest(all));
      },
      "row"_a.noconvert(), "token"_a);
}

}  // namespace codespec
