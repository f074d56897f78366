// The live automaton, and matching in several at once.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <mutex>
#include <stdexcept>

#include "automaton.h"
#include "bindings.h"

using namespace nanobind::literals;

namespace codespec {
namespace {

// An automaton that threads may share. Who has to wait for it lets the GIL go meanwhile.
class SharedAutomaton {
 public:
  explicit SharedAutomaton(int max_depth) : automaton_(max_depth) {}

  // For calls of some microseconds: giving up the GIL may cost more than they do.
  template <typename F>
  auto quick(F f) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      const nb::gil_scoped_release release;
      lock.lock();
    }
    return f(automaton_);
  }

  // For changes of any number of tokens.
  template <typename F>
  void change(std::size_t n_tokens, F f) {
    constexpr std::size_t kQuick = 64;
    if (n_tokens <= kQuick) return quick(f);
    const nb::gil_scoped_release release;
    const std::lock_guard lock(mutex_);
    f(automaton_);
  }

 private:
  SuffixAutomaton automaton_;
  std::mutex mutex_;
};

// Where a context that grows stands in several automata: nothing is matched twice.
class Matcher {
 public:
  explicit Matcher(const std::vector<nb::object>& automata) {
    for (const nb::object& o : automata) readers_.push_back({o, nb::cast<SharedAutomaton*>(o)});
  }

  // The draft of the automaton with the longest match, the first of equals.
  Proposal draft(Tokens context, int n_max, int min_length, const Allowed& allowed) {
    const Tokens more = grown(context);
    Proposal best(0);
    int best_length = 0;
    for (Reader& reader : readers_) {
      reader.automaton->quick([&](SuffixAutomaton& a) {
        const bool knows = reader.n_changes == a.n_changes() && is_grown_;
        if (knows) {
          for (const Token token : more) reader.match = a.grow(reader.match, token);
        } else {
          reader.match = a.find(context);
          reader.n_changes = a.n_changes();
        }
        // A draft's match is no longer than that of its context.
        if (reader.match.length <= best_length) return;
        Proposal found = a.follow(reader.match, n_max, min_length, allowed);
        const int length = found.size() > 0 ? found.column(Proposal::kMatchLengths)[0] : 0;
        if (length <= best_length) return;
        best = std::move(found);
        best_length = length;
      });
    }
    return best;
  }

 private:
  struct Reader {
    nb::object owner;
    SharedAutomaton* automaton;
    SuffixAutomaton::Match match{};
    std::uint64_t n_changes = ~std::uint64_t{0};
  };

  // The tokens that `context` has more than the last one, and whether that is all.
  Tokens grown(Tokens context) {
    constexpr auto kTail = static_cast<std::size_t>(kMaxDepth);
    const std::size_t n_more = context.size() - std::min(n_context_, context.size());
    const Tokens before = context.first(context.size() - n_more);
    is_grown_ = n_context_ <= context.size() && n_context_ > 0 &&
                std::ranges::equal(before.last(std::min(kTail, before.size())), tail_);
    n_context_ = context.size();
    const Tokens tail = context.last(std::min(kTail, context.size()));
    tail_.assign(tail.begin(), tail.end());
    return context.last(n_more);
  }

  std::vector<Reader> readers_;
  std::vector<Token> tail_;  // of the last context
  std::size_t n_context_ = 0;
  bool is_grown_ = false;
};

}  // namespace

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

  nb::class_<Matcher>(m, "Matcher", nb::is_final())
      .def(nb::init<const std::vector<nb::object>&>(), "automata"_a)
      .def(
          "draft",
          [](Matcher& matcher, const TokenArray& context, int n_max, int min_length,
             const std::optional<TokenArray>& allowed) {
            check_limits(n_max, min_length);
            return matcher.draft(as_span(context), n_max, min_length, as_allowed(allowed));
          },
          "context"_a.noconvert(), "n_max"_a, "min_length"_a = 1,
          "allowed"_a.noconvert() = nb::none());
}

}  // namespace codespec
