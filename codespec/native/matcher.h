// Suffix automata as lookups use them: shared between threads, matched as a context grows.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "automaton.h"

namespace codespec {

namespace nb = nanobind;

// True in threads that look up without the GIL: they have none to release.
inline thread_local bool is_without_gil = false;

class ReleasedGil {
 public:
  ReleasedGil() {
    if (!is_without_gil) released_.emplace();
  }

 private:
  std::optional<nb::gil_scoped_release> released_;
};

// An automaton that threads may share. A thread that waits for it releases the GIL meanwhile.
class SharedAutomaton {
 public:
  explicit SharedAutomaton(int max_depth) : automaton_(max_depth) {}

  // For calls of some microseconds: releasing the GIL may take longer than they do.
  template <typename F>
  auto quick(F f) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
      const ReleasedGil release;
      lock.lock();
    }
    return f(automaton_);
  }

  // For changes of any number of tokens.
  template <typename F>
  void change(std::size_t n_tokens, F f) {
    constexpr std::size_t kQuick = 64;
    if (n_tokens <= kQuick) return quick(f);
    const ReleasedGil release;
    const std::lock_guard lock(mutex_);
    f(automaton_);
  }

 private:
  SuffixAutomaton automaton_;
  std::mutex mutex_;
};

// An automaton that is kept alive.
struct AutomatonRef {
  explicit AutomatonRef(nb::object o)
      : owner(std::move(o)), get(nb::cast<SharedAutomaton*>(owner)) {}
  nb::object owner;
  SharedAutomaton* get;
};

// Matches of a context in several automata. The context is a base, the same in all calls, and a
// tail, which mostly grows. No token is matched twice.
class Matcher {
 public:
  explicit Matcher(const std::vector<nb::object>& automata) {
    for (const nb::object& o : automata) readers_.push_back({AutomatonRef(o)});
  }

  // The draft of the automaton with the longest match, the first of equals.
  Proposal draft(Tokens base, Tokens tail, int n_max, const Allowed& allowed) {
    const bool is_grown =
        tail.size() >= tail_.size() && std::ranges::equal(tail.first(tail_.size()), tail_);
    const std::size_t n_known = is_grown ? tail_.size() : 0;
    tail_.assign(tail.begin(), tail.end());
    return longest(n_max, allowed, [&](Reader& reader, const SuffixAutomaton& a) {
      if (reader.n_changes != a.n_changes()) {
        reader.base = a.find(base);
        reader.n_changes = a.n_changes();
        reader.match = grown(a, reader.base, tail);
      } else if (is_grown) {
        reader.match = grown(a, reader.match, tail.subspan(n_known));
      } else {
        reader.match = grown(a, reader.base, tail);
      }
      return reader.match;
    });
  }

  // A draft after any context, matched from scratch.
  Proposal draft_anywhere(Tokens context, int n_max, const Allowed& allowed) {
    return longest(n_max, allowed,
                   [&](Reader&, const SuffixAutomaton& a) { return a.find(context); });
  }

 private:
  using Match = SuffixAutomaton::Match;

  struct Reader {
    AutomatonRef automaton;
    Match base{}, match{};  // of the base, and of it with the last tail
    std::uint64_t n_changes = ~std::uint64_t{0};
  };

  static Match grown(const SuffixAutomaton& a, Match match, Tokens more) {
    for (const Token token : more) match = a.grow(match, token);
    return match;
  }

  template <typename Find>
  Proposal longest(int n_max, const Allowed& allowed, Find find) {
    Proposal best(0);
    int best_length = 0;
    for (Reader& reader : readers_) {
      reader.automaton.get->quick([&](const SuffixAutomaton& a) {
        const Match match = find(reader, a);
        // A draft's match is no longer than that of its context.
        if (match.length <= best_length) return;
        Proposal found = a.follow(match, n_max, 1, allowed);
        const int length = found.size() > 0 ? found.column(Proposal::kMatchLengths)[0] : 0;
        if (length <= best_length) return;
        best = std::move(found);
        best_length = length;
      });
    }
    return best;
  }

  std::vector<Reader> readers_;
  std::vector<Token> tail_;  // the last one
};

}  // namespace codespec
