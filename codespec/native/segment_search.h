// Binary search for the left context in the sorted positions.
#pragma once

#include <algorithm>
#include <array>

#include "segment.h"
#include "segment_format.h"
#include "tokens.h"

namespace codespec {

// A context read backwards: nearest token first, at most kMaxDepth, cut where no match can go on.
class ReversedContext {
 public:
  ReversedContext(Tokens context, Tokens drafted, std::uint64_t n_vocab) {
    if (append(drafted, n_vocab)) append(context, n_vocab);
  }

  int size() const { return size_; }
  Token operator[](int i) const { return tokens_[static_cast<std::size_t>(i)]; }

 private:
  bool append(Tokens tokens, std::uint64_t n_vocab) {
    for (auto t = tokens.rbegin(); t != tokens.rend(); ++t) {
      if (size_ == kMaxDepth || *t < 0 || static_cast<std::uint64_t>(*t) >= n_vocab) return false;
      tokens_[static_cast<std::size_t>(size_++)] = *t;
    }
    return true;
  }

  int size_ = 0;
  std::array<Token, kMaxDepth> tokens_;
};

// Guard: checks if the bytes at an address are sound; others read as 0.
template <typename Guard>
class ContextSearch {
 public:
  ContextSearch(Guard guard, const Text& text, const BitArray& positions, std::size_t n_positions,
                std::span<const std::uint64_t> keys, const KeyPacker& packer)
      : guard_(guard),
        text_(text),
        positions_(positions),
        n_positions_(n_positions),
        keys_(keys),
        packer_(packer) {}

  // The text offset at sorted position i. A damaged one becomes 0: a separator, without context.
  std::uint32_t position(std::size_t i) const {
    const std::uint32_t p = guard_(positions_.address(i)) ? positions_[i] : 0;
    return p < text_.size() ? p : 0;
  }

  // The token at a text offset that is in range.
  Token token(std::size_t i) const { return guard_(text_.address(i)) ? text_[i] : kBreak; }

  // All positions with the longest match of the context; length 0 when there is none.
  Interval longest(const ReversedContext& context) const {
    const std::size_t i = insertion_point(context);
    return spread({kMaxDepth, i, i}, context);
  }

  // All positions with the longest match that is shorter than the interval's: its suffix link.
  Interval shorter(const Interval& interval, const ReversedContext& context) const {
    return spread({interval.length - 1, interval.lo, interval.hi}, context);
  }

 private:
  // Number of nearest tokens that agree, knowing that `from` do.
  int common(std::size_t i, const ReversedContext& context, int from = 0) const {
    const std::uint32_t p = position(i);
    const int limit = std::min(context.size(), static_cast<int>(std::min<std::uint32_t>(
                                                   p, static_cast<std::uint32_t>(kMaxDepth))));
    int d = from;
    while (d < limit && token(p - 1 - static_cast<std::uint32_t>(d)) == context[d]) ++d;
    return d;
  }

  // First position whose context is not below the given one.
  std::size_t insertion_point(const ReversedContext& context) const {
    const auto key = packer_.pack([&](int d) { return d < context.size() ? context[d] : kBreak; });
    const std::size_t n_below = n_keys_below(key);
    // The key decides alone where it holds the whole context; else equal ones follow, mostly few.
    const std::size_t n_up_to = context.size() <= packer_.width()
                                    ? n_below
                                    : n_below + run(keys_.size() - n_below, [&](std::size_t k) {
                                        return this->key(n_below + k) <= key;
                                      });
    std::size_t lo = n_below == 0 ? 0 : (n_below - 1) * kKeyStride + 1;
    std::size_t hi = std::min(n_up_to * kKeyStride, n_positions_);
    // What both ends share with the context, all between them do (Manber and Myers 1990).
    int common_lo = 0, common_hi = 0;
    while (lo < hi) {
      const std::size_t mid = lo + (hi - lo) / 2;
      if (hi - lo > 64) {  // else they are near: one of these is next
        positions_.prefetch(lo + (mid - lo) / 2);
        positions_.prefetch(mid + 1 + (hi - mid - 1) / 2);
      }
      const int d = common(mid, context, std::min(common_lo, common_hi));
      if (below(mid, context, d)) {
        lo = mid + 1;
        common_lo = d;
      } else {
        hi = mid;
        common_hi = d;
      }
    }
    return lo;
  }

  std::uint64_t key(std::size_t i) const { return guard_(&keys_[i]) ? keys_[i] : 0; }

  std::size_t n_keys_below(std::uint64_t bound) const {
    std::size_t begin = 0, n = keys_.size();
    while (n > 0) {
      const std::size_t half = n / 2;
      if (key(begin + half) >= bound) {
        n = half;
      } else {
        begin += half + 1;
        n -= half + 1;
      }
    }
    return begin;
  }

  // True if the context of position i, equal in the first d tokens but not in the next, sorts
  // first.
  bool below(std::size_t i, const ReversedContext& context, int d) const {
    if (d == context.size()) return false;
    const std::uint32_t p = position(i);
    return static_cast<std::uint32_t>(d) >= p ||
           token(p - 1 - static_cast<std::uint32_t>(d)) < context[d];
  }

  // Widens [lo, hi) by all that share what the better of its two neighbours shares, of at most
  // at.length tokens: in an undamaged file no bound, in any other one the end of backing off.
  Interval spread(Interval at, const ReversedContext& context) const {
    const int best = std::max(at.lo > 0 ? common(at.lo - 1, context) : 0,
                              at.hi < n_positions_ ? common(at.hi, context) : 0);
    at.length = std::min(at.length, best);
    if (at.length == 0) return {};
    // How far to look: short matches have long intervals, and the keys tell to a stride where
    // those end, at a fraction of the cache misses.
    Interval limit{at.length, 0, n_positions_};
    if (at.length <= packer_.width()) widen_by_keys(at, limit, context);
    at.lo -= run(at.lo - limit.lo,
                 [&](std::size_t k) { return common(at.lo - 1 - k, context) >= at.length; });
    at.hi += run(limit.hi - at.hi,
                 [&](std::size_t k) { return common(at.hi + k, context) >= at.length; });
    return at;
  }

  // Widens `at` to the outermost positions that have a key and share at.length tokens, and narrows
  // `limit` to exclude the next ones. What a damaged key says stays in range.
  void widen_by_keys(Interval& at, Interval& limit, const ReversedContext& context) const {
    const auto token = [&](int d) { return d < at.length ? context[d] : kBreak; };
    const std::uint64_t least = packer_.pack(token);
    const std::uint64_t most = least | packer_.rest(at.length);
    const std::size_t begin = (at.lo + kKeyStride - 1) / kKeyStride;
    const std::size_t end = (at.hi + kKeyStride - 1) / kKeyStride;
    const auto n_before = run(begin, [&](std::size_t k) { return key(begin - 1 - k) >= least; });
    const auto n_after =
        run(keys_.size() - end, [&](std::size_t k) { return key(end + k) <= most; });
    if (n_before > 0) at.lo = (begin - n_before) * kKeyStride;
    if (n_before < begin) limit.lo = (begin - n_before - 1) * kKeyStride + 1;
    if (n_after > 0) at.hi = (end + n_after - 1) * kKeyStride + 1;
    limit.hi = std::min((end + n_after) * kKeyStride, n_positions_);
  }

  // Length of the run of true at the begin of n values, by galloping: intervals are mostly short.
  template <typename Predicate>
  static std::size_t run(std::size_t n, Predicate holds) {
    std::size_t known = 0, step = 1;
    while (known + step <= n && holds(known + step - 1)) {
      known += step;
      step *= 2;
    }
    std::size_t end = std::min(n, known + step - 1);
    while (known < end) {
      const std::size_t mid = known + (end - known) / 2;
      if (holds(mid)) {
        known = mid + 1;
      } else {
        end = mid;
      }
    }
    return known;
  }

  [[no_unique_address]] Guard guard_;
  const Text& text_;
  const BitArray& positions_;
  std::size_t n_positions_;
  std::span<const std::uint64_t> keys_;
  const KeyPacker& packer_;
};

}  // namespace codespec
