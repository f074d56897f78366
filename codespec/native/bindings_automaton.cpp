// Python bindings of the suffix automaton.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>

#include "bindings.h"
#include "matcher.h"

using namespace nanobind::literals;

namespace codespec {

void bind_automaton(nb::module_& m) {
  using Shared = SharedAutomaton;
  using Automaton = SuffixAutomaton;
  nb::class_<Shared>(m, "SuffixAutomaton", nb::is_final())
      .def(nb::init<int>(), "max_depth"_a = kMaxDepth)
      .def("__len__", [](Shared& s) { return s.quick([](Automaton& a) { return a.size(); }); })
      .def_prop_ro("max_depth",
                   [](Shared& s) { return s.quick([](Automaton& a) { return a.max_depth(); }); })
      .def_prop_ro("n_states",
                   [](Shared& s) { return s.quick([](Automaton& a) { return a.n_states(); }); })
      .def_prop_ro("n_bytes",
                   [](Shared& s) { return s.quick([](Automaton& a) { return a.n_bytes(); }); })
      .def_prop_ro(
          "text",
          [](Shared& s) { return s.quick([](Automaton& a) { return as_numpy(a.text()); }); },
          nb::rv_policy::automatic)
      .def(
          "extend",
          [](Shared& s, const TokenArray& tokens) {
            s.change(tokens.size(), [&](Automaton& a) { a.extend(as_span(tokens)); });
          },
          "tokens"_a.noconvert())
      .def(
          "assign",
          [](Shared& s, const TokenArray& tokens) {
            const Tokens text = as_span(tokens);
            const std::size_t n =
                s.quick([&](Automaton& a) { return a.size() + text.size() - 2 * a.n_same(text); });
            s.change(n, [&](Automaton& a) { a.assign(text); });
          },
          "tokens"_a.noconvert())
      .def("extend_break",
           [](Shared& s) { s.quick([](Automaton& a) { a.extend(Tokens(&kBreak, 1)); }); })
      .def(
          "truncate",
          [](Shared& s, std::int64_t n) {
            s.change(SIZE_MAX, [&](Automaton& a) {
              if (n < 0 || static_cast<std::size_t>(n) > a.size()) {
                throw std::invalid_argument("n must be 0 to the length of the text");
              }
              a.truncate(static_cast<std::size_t>(n));
            });
          },
          "n"_a)
      .def(
          "count",
          [](Shared& s, const TokenArray& string) {
            return s.quick([&](Automaton& a) {
              if (string.size() < 1 || string.size() > static_cast<std::size_t>(a.max_depth())) {
                throw nb::value_error("the string must have 1 to max_depth tokens");
              }
              return a.count(as_span(string));
            });
          },
          "string"_a.noconvert())
      .def(
          "followers",
          [](Shared& s, const TokenArray& string) {
            return s.quick([&](Automaton& a) {
              if (string.size() < 1 || string.size() > static_cast<std::size_t>(a.max_depth())) {
                throw nb::value_error("the string must have 1 to max_depth tokens");
              }
              return a.followers(as_span(string));
            });
          },
          "string"_a.noconvert())
      .def(
          "match",
          [](Shared& s, const TokenArray& context) {
            return s.quick([&](Automaton& a) { return a.match(as_span(context)); });
          },
          "context"_a.noconvert())
      .def(
          "draft",
          [](Shared& s, const TokenArray& context, int n_max, int min_length,
             const std::optional<TokenArray>& allowed) {
            check_limits(n_max, min_length);
            return s.quick([&](Automaton& a) {
              return a.draft(as_span(context), n_max, min_length, as_allowed(allowed));
            });
          },
          "context"_a.noconvert(), "n_max"_a, "min_length"_a = 1,
          "allowed"_a.noconvert() = nb::none())
      .def(
          "draft_tail",
          [](Shared& s, int n_max, int min_length, const std::optional<TokenArray>& allowed) {
            check_limits(n_max, min_length);
            return s.quick(
                [&](Automaton& a) { return a.draft_tail(n_max, min_length, as_allowed(allowed)); });
          },
          "n_max"_a, "min_length"_a = 1, "allowed"_a.noconvert() = nb::none());
}

}  // namespace codespec
