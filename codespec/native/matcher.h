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

// Where a context that grows stands in several automata: nothing is matched twice.
class Matcher {
 public:
  explicit Matcher(const std::vector<nb::object>& automata) {
    for (const nb::object& o : automata) readers_.push_back({AutomatonRef(o)});
  }

  // The draft of the automaton with the longest match, the first of equals.
  Proposal draft(Tokens context, int n_max, const Allowed& allowed) {
    const Tokens more = grown(context);
    Proposal best(0);
    int best_length = 0;
    for (Reader& reader : readers_) {
      reader.automaton.get->quick([&](SuffixAutomaton& a) {
        const bool knows = reader.n_changes == a.n_changes() && is_grown_;
        if (knows) {
          for (const Token token : more) reader.match = a.grow(reader.match, token);
        } else {
          reader.match = a.find(context);
          reader.n_changes = a.n_changes();
        }
        // A draft's match is no longer than that of its context.
        if (reader.match.length <= best_length) return;
        Proposal found = a.follow(reader.match, n_max, 1, allowed);
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
    AutomatonRef automaton;
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

}  // namespace codespec
