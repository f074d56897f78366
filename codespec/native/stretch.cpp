#include "stretch.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "batch.h"
#include "softmax.h"

namespace codespec {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// True if a chain may be handed to the target: damaged files may hold any ids.
Draft draft(const Drafting& drafting, Tokens emitted, std::size_t n_max, std::size_t n_vocab) {
  const int n = static_cast<int>(n_max);
  drafting.sources->clear();
  if (n == 0) return {};
  const auto n_offers = drafting.boundary != nullptr
                            ? drafting.boundary->ask(emitted, {}, n, *drafting.sources)
                            : drafting.sources->ask(emitted, {}, n);
  Draft found;
  if (n_offers != 0) {
    found = drafting.planner->plan(drafting.sources->offers(),
                                   {n, 1, drafting.costs[drafting.is_back].first(n_max + 1)});
  }
  const auto is_known = [&](Token t) { return t >= 0 && static_cast<std::size_t>(t) < n_vocab; };
  if (found.tokens.size() > n_max || !std::ranges::all_of(found.tokens, is_known)) return {};
  return found;
}

}  // namespace

Stretch decode_stretch(const LlamaContext& target, Drafting drafting, const StretchLimits& limits,
                       std::vector<Token> emitted, Token last, std::int32_t n_cached) {
  Stretch done;
  if (drafting.planner != nullptr) {
    done.by_source.resize(static_cast<std::size_t>(drafting.planner->model.n_sources()));
  }
  const auto guarded = [&](const auto& work) {
    if (drafting.sources == nullptr) return;
    try {
      work();
    } catch (const std::exception&) {
      done.is_damaged = true;
      drafting.sources = nullptr;
    }
  };
  const auto start = Clock::now();
  auto heard = start;
  const auto is_interrupted = [&] {
    if (ms_since(heard) < StretchLimits::kAskMs || done.pass_ms.empty()) return false;
    heard = Clock::now();
    return limits.interrupted();
  };
  bool is_over = false;
  while (!is_over && done.pass_ms.size() < limits.n_passes &&
         done.tokens.size() < limits.n_tokens && ms_since(start) < limits.ms && !is_interrupted()) {
    const auto asked = Clock::now();
    const std::size_t n_left = limits.n_tokens - done.tokens.size();
    Draft d;
    guarded([&] {
      d = draft(drafting, emitted, std::min(limits.n_draft, n_left - 1), target.n_vocab);
    });
    const double draft_ms = ms_since(asked);

    const auto began = Clock::now();
    const std::size_t n = d.tokens.size();
    if (1 + n < drafting.width &&
        static_cast<std::size_t>(n_cached) + drafting.width <= target.n_ctx)
      d.tokens.resize(drafting.width - 1, last);
    const std::size_t width = 1 + d.tokens.size();
    LlamaBatch& batch = *target.batch;
    batch.n_tokens = static_cast<std::int32_t>(width);
    Batch{{batch.token, width}, {batch.pos, width}, {batch.logits, width}}.lay({&last, 1}, d.tokens,
                                                                               n_cached, true);
    const float* logits = nullptr;
    {
      const nb::gil_scoped_release release;
      done.code = target.decode(target.context, batch);
      if (done.code == 0) logits = target.logits(target.context);
    }
    if (done.code != 0) break;

    // Equals `verify.accept` for greedy decoding: row i follows the i-th drafted token.
    const std::size_t n_before = done.tokens.size();
    std::size_t n_accepted = 0;
    while (true) {
      const std::span row{logits + n_accepted * target.n_vocab, target.n_vocab};
      last = static_cast<Token>(argmax(row));
      done.tokens.push_back(last);
      if (limits.is_scored) {
        const auto token = static_cast<std::size_t>(last);
        done.log_probs.push_back(log_probability(row, token, row[token]));
      }
      const auto end = limits.ends[static_cast<std::size_t>(last)];
      is_over |= end != StretchLimits::kGoesOn;
      const bool is_last = end == StretchLimits::kEndsText;
      if (is_last || n_accepted == n || last != d.tokens[n_accepted]) break;
      ++n_accepted;
    }
    n_cached += static_cast<std::int32_t>(1 + n_accepted);
    drafting.is_back = width == 1;
    if (1 + n_accepted < width) target.remove(target.memory, 0, n_cached, -1);

    done.pass_ms.push_back(ms_since(began));
    done.draft_ms.push_back(draft_ms);
    done.widths.push_back(static_cast<std::int32_t>(width));
    done.n_drafted.push_back(static_cast<std::int32_t>(n));
    done.n_accepted.push_back(static_cast<std::int32_t>(n_accepted));
    for (std::size_t i = 0; i < n; ++i) {
      auto& count = done.by_source.at(static_cast<std::size_t>(d.sources[i]));
      ++count.n_drafted;
      if (i < n_accepted) ++count.n_accepted;
    }
    guarded([&] {
      const auto said = done.tokens.begin() + static_cast<std::ptrdiff_t>(n_before);
      emitted.insert(emitted.end(), said, done.tokens.end());
      drafting.planner->learn({said, done.tokens.end()}, done.tokens.size() - n_before);
    });
  }
  return done;
}

}  // namespace codespec
