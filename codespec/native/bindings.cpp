// Python bindings: they check and convert arguments and lock threads. The contract is _core.pyi.
#include "bindings.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <filesystem>

#include "segment.h"

namespace codespec {
namespace {

using NumpyTokens = nb::ndarray<nb::numpy, const std::int32_t, nb::ndim<1>>;

// A view; as a property it keeps the proposal alive.
template <Proposal::Column column>
NumpyTokens view(const Proposal& proposal) {
  const auto cells = proposal.column(column);
  return {cells.data(), {cells.size()}};
}

nb::ndarray<nb::numpy, const std::int32_t, nb::ndim<2>> all_columns(const Proposal& proposal) {
  return {proposal.tokens().data(),
          {static_cast<std::size_t>(Proposal::kNumColumns), proposal.tokens().size()},
          nb::handle(),
          {proposal.capacity(), 1}};
}

void bind_proposal(nb::module_& m) {
  nb::class_<Proposal>(m, "Proposal", nb::is_final())
      .def("__len__", &Proposal::size)
      .def_prop_ro("tokens", &view<Proposal::kTokens>)
      .def_prop_ro("counts", &view<Proposal::kCounts>)
      .def_prop_ro("totals", &view<Proposal::kTotals>)
      .def_prop_ro("match_lengths", &view<Proposal::kMatchLengths>)
      .def_prop_ro("alt_tokens", &view<Proposal::kAltTokens>)
      .def_prop_ro("alt_counts", &view<Proposal::kAltCounts>)
      .def_prop_ro("columns", &all_columns)
      .def_prop_ro(
          "match_length",
          [](const Proposal& p) { return p.size() > 0 ? p.column(Proposal::kMatchLengths)[0] : 0; })
      .def_ro("n_matches", &Proposal::n_matches)
      .def_ro("position", &Proposal::position);
}

void raise_os_error(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const std::filesystem::filesystem_error& e) {
    errno = e.code().default_error_condition().value();
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, e.path1().string().c_str());
  }
}

}  // namespace
}  // namespace codespec

NB_MODULE(_core, m) {
  using namespace codespec;
  using namespace nb::literals;
  nb::register_exception_translator(raise_os_error);
  nb::exception<DamagedSegment>(m, "DamagedSegmentError", PyExc_ValueError);
  m.attr("MAX_DEPTH") = kMaxDepth;
  m.def(
      "common_prefix",
      [](const TokenArray& a, const TokenArray& b) {
        const Tokens x = as_span(a), y = as_span(b);
        return std::ranges::mismatch(x, y).in1 - x.begin();
      },
      "a"_a.noconvert(), "b"_a.noconvert());
  bind_proposal(m);
  bind_automaton(m);
  bind_segment(m);
  bind_words(m);
  bind_sources(m);
  bind_boundary(m);
  bind_stretch(m);
  bind_planner(m);
  bind_batch(m);
  bind_serving(m);
}
