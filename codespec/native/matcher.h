// Live automata as lookups see them: shared between threads, matched as a context grows.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "automaton.h"

namespace codespec {

namespace nb = nanobind;

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

// An automaton that is kept alive.
struct AutomatonRef {
  explicit AutomatonRef(nb::object o)
      : owner(std::move(o)), get(nb::cast<SharedAutomaton*>(owner)) {}
  nb::object owner;
  SharedAutomaton* get;
};

// Where a context stands in several automata: a base, the same in all calls, and a tail, which
// mostly grows. Nothing is matched twice, and what cannot matter is not matched yet: a match grows
// by a token at most with each, so that most are left behind until they could be the longest.
class Matcher {
 public:
  explicit Matcher(const std::vector<nb::object>& automata) {
    for (const nb::object& o : automata) readers_.push_back({AutomatonRef(o)});
  }

  // The draft of the automaton with the longest match, the first of equals.
  Proposal draft(Tokens base, Tokens tail, int n_max, const Allowed& allowed) {
    const bool is_grown =
        tail.size() >= tail_.size() && std::ranges::equal(tail.first(tail_.size()), tail_);
    tail_.assign(tail.begin(), tail.end());
    const auto catch_up = [&](Reader& reader, const SuffixAutomaton& a) {
      if (reader.n_changes != a.n_changes()) {
        reader.n_changes = a.n_changes();
        reader.base = reader.match = a.find(base);
        reader.n_read = 0;
      }
    };
    std::vector<std::size_t> most;
    for (Reader& reader : readers_) {
      if (!is_grown) reader.go_back();
      reader.automaton.get->quick([&](const SuffixAutomaton& a) { catch_up(reader, a); });
      most.push_back(reader.length() + tail.size() - reader.n_read);
    }
    return longest(std::move(most), n_max, allowed, [&](Reader& reader, const SuffixAutomaton& a) {
      catch_up(reader, a);
      for (; reader.n_read < tail.size(); ++reader.n_read) {
        reader.match = a.grow(reader.match, tail[reader.n_read]);
      }
      return reader.match;
    });
  }

  // After a context wherever it stands.
  Proposal draft_anywhere(Tokens context, int n_max, const Allowed& allowed) {
    return longest(std::vector(readers_.size(), context.size()), n_max, allowed,
                   [&](Reader&, const SuffixAutomaton& a) { return a.find(context); });
  }

 private:
  using Match = SuffixAutomaton::Match;

  struct Reader {
    AutomatonRef automaton;
    std::uint64_t n_changes = ~std::uint64_t{0};
    Match base{}, match{};   // of the base, and of it with the first tokens of the last tail
    std::size_t n_read = 0;  // so many

    std::size_t length() const { return static_cast<std::size_t>(match.length); }
    void go_back() {
      match = base;
      n_read = 0;
    }
  };

  // most: how long each one's match is at most. match: (reader, automaton) -> what it is.
  template <typename Find>
  Proposal longest(std::vector<std::size_t> most, int n_max, const Allowed& allowed, Find match) {
    Proposal best(0);
    std::size_t best_length = 0, best_i = 0;
    while (true) {
      const auto i = static_cast<std::size_t>(std::ranges::max_element(most) - most.begin());
      const bool is_over = i == most.size() || most[i] < best_length;
      if (is_over || (most[i] == best_length && i >= best_i)) return best;
      readers_[i].automaton.get->quick([&](const SuffixAutomaton& a) {
        const Match found = match(readers_[i], a);
        const auto length = static_cast<std::size_t>(found.length);
        if (length < most[i]) {  // others may be longer
          most[i] = length;
          return;
        }
        most[i] = 0;
        Proposal proposal = a.follow(found, n_max, 1, allowed);
        if (proposal.size() == 0) return;
        // No longer than that of its context.
        const auto drafted = static_cast<std::size_t>(proposal.column(Proposal::kMatchLengths)[0]);
        if (drafted > best_length || (drafted == best_length && i < best_i)) {
          best = std::move(proposal);
          best_length = drafted;
          best_i = i;
        }
      });
    }
  }

  std::vector<Reader> readers_;
  std::vector<Token> tail_;  // the last one
};

}  // namespace codespec
