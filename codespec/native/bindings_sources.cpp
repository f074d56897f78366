// Python bindings of the sources of a request.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>
#include <vector>

#include "sources.h"

using namespace nanobind::literals;

namespace codespec {
namespace {

using Columns = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::device::cpu>;
using PyPart = std::pair<nb::object, std::optional<AnyVector>>;

std::vector<Step> as_steps(const Columns& columns) {
  if (columns.shape(0) != Proposal::kNumColumns) throw nb::value_error("an offer has 6 columns");
  std::vector<Step> steps(columns.shape(1));
  const auto at = [&](int column, std::size_t i) {
    return columns
        .data()[column * columns.stride(0) + static_cast<std::int64_t>(i) * columns.stride(1)];
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i] = {at(Proposal::kTokens, i),    at(Proposal::kCounts, i),
                at(Proposal::kTotals, i),    at(Proposal::kMatchLengths, i),
                at(Proposal::kAltTokens, i), at(Proposal::kAltCounts, i)};
  }
  return steps;
}

std::vector<Files::Part> as_parts(const std::vector<PyPart>& segments) {
  std::vector<Files::Part> parts;
  for (const auto& [owner, dead] : segments) {
    const auto* segment = nb::cast<const Segment*>(owner);
    as_dead(dead, *segment);
    parts.push_back({owner, segment, dead});
  }
  return parts;
}

auto as_offers(const Sources& self) {
  std::vector<std::pair<int, nb::object>> offers;
  for (const Offer& offer : self.offers()) {
    std::vector<Token> tokens;
    for (const Step& step : offer.steps) tokens.push_back(step.token);
    offers.emplace_back(offer.source, nb::cast(as_numpy(std::move(tokens))));
  }
  return offers;
}

std::size_t at_most(const Sources& self, std::size_t i) {
  if (i >= self.size()) throw nb::index_error("there is no such source");
  return i;
}

}  // namespace

void bind_sources(nb::module_& m) {
  nb::class_<Sources>(m, "Sources", nb::is_final())
      .def(nb::new_([](TokenArray base) { return Sources(std::move(base)); }), "base"_a.noconvert())
      .def("__len__", &Sources::size)
      .def(
          "add_before",
          [](Sources& self, int source, const nb::object& automaton) {
            self.add(checked_source(source), BeforeCursor(AutomatonRef(automaton)));
          },
          "source"_a, "automaton"_a)
      .def(
          "add_automata",
          [](Sources& self, int source, const std::vector<nb::object>& automata, bool is_after) {
            self.add(checked_source(source), Automata{Matcher(automata), is_after});
          },
          "source"_a, "automata"_a, "is_after"_a = false)
      .def(
          "add_segments",
          [](Sources& self, int source, const std::vector<PyPart>& segments) {
            self.add(checked_source(source), Files(as_parts(segments)));
          },
          "source"_a, "segments"_a)
      .def(
          "draft",
          [](Sources& self, std::size_t i, const TokenArray& tail, int n_max,
             const std::optional<TokenArray>& allowed) {
            check_limits(n_max, 1);
            return self.draft(at_most(self, i), as_span(tail), n_max, as_allowed(allowed));
          },
          "i"_a, "tail"_a.noconvert(), "n_max"_a, "allowed"_a.noconvert() = nb::none())
      .def(
          "draft_all",
          [](Sources& self, const TokenArray& tail, int n_max,
             const std::optional<TokenArray>& allowed) {
            check_limits(n_max, 1);
            return self.draft_all(as_span(tail), n_max, as_allowed(allowed));
          },
          "tail"_a.noconvert(), "n_max"_a, "allowed"_a.noconvert() = nb::none())
      .def(
          "ask",
          [](Sources& self, const TokenArray& tail, const TokenArray& path, int n_max) {
            check_limits(n_max, 1);
            return self.ask(as_span(tail), as_span(path), n_max);
          },
          "tail"_a.noconvert(), "path"_a.noconvert(), "n_max"_a)
      .def(
          "ask_last",
          [](Sources& self, int n_max) {
            check_limits(n_max, 1);
            return self.ask_last(n_max);
          },
          "n_max"_a)
      .def_prop_ro("offers", &as_offers)
      .def("clear", &Sources::clear)
      .def(
          "offer",
          [](Sources& self, std::size_t i, std::int64_t position, const Columns& columns,
             const TokenArray& path) {
            self.offer(at_most(self, i), position, as_steps(columns), as_span(path));
          },
          "i"_a, "position"_a, "columns"_a.noconvert(), "path"_a.noconvert());
}

}  // namespace codespec
