// Drafting from a segment: search once, then let a sample of the places found vote token by token.
#include <array>

#include "segment.h"
#include "segment_search.h"

namespace codespec {
namespace {

constexpr std::size_t kSample = 64;
constexpr std::size_t kProbes = 1024;  // asked before an interval is taken for dead

// Occurrences of the context with the token that follows each.
class Sample {
 public:
  struct Voter {
    std::uint32_t position;
    Token token;
  };

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == kSample; }
  void clear() { size_ = 0; }
  void add(Voter voter) { voters_[size_++] = voter; }

  Election vote() const {
    std::array<Election::Candidate, kSample> candidates;
    std::size_t n = 0;
    for (const Voter& voter : voters()) {
      std::size_t i = 0;
      while (i < n && candidates[i].token != voter.token) ++i;
      if (i == n) candidates[n++] = {voter.token, 0, -std::int64_t{voter.token}};
      ++candidates[i].count;
    }
    Election election;
    for (const auto& candidate : std::span(candidates).first(n)) election.add(candidate);
    return election;
  }

  std::uint32_t first_with(Token token) const {
    return std::ranges::find(voters(), token, &Voter::token)->position;
  }

  // Keeps those that said `token` and moves them past it, as long as a token follows.
  template <typename TokenAt>
  void advance(Token token, TokenAt token_at) {
    std::size_t n = 0;
    for (const Voter& voter : voters()) {
      if (voter.token != token) continue;
      const Voter moved{voter.position + 1, token_at(voter.position + 1)};
      if (moved.token != kBreak) voters_[n++] = moved;
    }
    size_ = n;
  }

 private:
  std::span<const Voter> voters() const { return {voters_.data(), size_}; }

  std::size_t size_ = 0;
  std::array<Voter, kSample> voters_;
};

}  // namespace

Interval Segment::match(Tokens context) const {
  const ContextSearch search(Checking{checks_}, text_, positions_, header_.n_positions, keys_,
                             packer_);
  const Interval found = search.longest(ReversedContext(context, {}, header_.n_vocab));
  require_sound();
  return found;
}

std::vector<std::uint64_t> Segment::holders(Tokens string, std::size_t most) const {
  const ContextSearch search(Checking{checks_}, text_, positions_, header_.n_positions, keys_,
                             packer_);
  const Interval found = search.longest(ReversedContext(string, {}, header_.n_vocab));
  std::vector<std::uint64_t> documents;
  if (static_cast<std::size_t>(found.length) == string.size() && found.hi - found.lo <= most) {
    for (std::size_t i = found.lo; i < found.hi; ++i) {
      documents.push_back(doc_of(search.position(i)));
    }
  }
  require_sound();
  return documents;
}

Proposal Segment::draft(Tokens context, int n_max, int min_length, Dead dead,
                        const Allowed& allowed) const {
  require_sound();
  Proposal proposal = is_checked()
                          ? draft(context, n_max, min_length, dead, allowed, Trusting{})
                          : draft(context, n_max, min_length, dead, allowed, Checking{checks_});
  require_sound();
  return proposal;
}

template <typename Guard>
Proposal Segment::draft(Tokens context, int n_max, int min_length, Dead dead,
                        const Allowed& allowed, Guard guard) const {
  const ContextSearch search(guard, text_, positions_, header_.n_positions, keys_, packer_);
  const auto token_at = [&](std::uint32_t position) {
    const Token token = position < text_.size() ? search.token(position) : kBreak;
    // Whoever damaged the file must still not make us draft an id that was never in it.
    return static_cast<std::uint64_t>(token) < header_.n_vocab ? token : kBreak;
  };
  Sample sample;
  Proposal proposal(n_max);
  const auto may_say = [&](Token token) {
    return token != kBreak && (proposal.size() > 0 || allows(allowed, token));
  };
  const auto ask = [&](const Interval& interval) {
    const std::size_t m = interval.hi - interval.lo;
    for (const std::size_t limit : {kSample, kProbes}) {
      const std::size_t k = std::min(m, limit);
      for (std::size_t i = 0; i < std::min(k, kSample); ++i) {
        text_.prefetch(search.position(interval.lo + i * m / k));
      }
      for (std::size_t i = 0; i < k && !sample.full(); ++i) {
        const std::uint32_t p = search.position(interval.lo + i * m / k);
        if (!dead.empty() && dead[doc_of(p)] != 0) continue;
        if (const Token token = token_at(p); may_say(token)) sample.add({p, token});
      }
      if (!sample.empty() || m <= limit) return;
    }
  };

  int length = 0;
  while (!proposal.full()) {
    if (sample.empty()) {
      const ReversedContext reversed(context, proposal.tokens(), header_.n_vocab);
      Interval interval = search.longest(reversed);
      while (interval.length >= min_length) {
        ask(interval);
        if (!sample.empty()) break;
        interval = search.shorter(interval, reversed);
      }
      if (sample.empty()) break;
      length = interval.length;
      if (proposal.size() == 0) {
        proposal.n_matches = static_cast<std::int64_t>(interval.hi - interval.lo);
      }
    }
    const Election election = sample.vote();
    if (proposal.size() == 0) proposal.position = sample.first_with(election.best.token);
    proposal.push(election.step(length));
    sample.advance(election.best.token, token_at);
    length = std::min(length + 1, kMaxDepth);
  }
  return proposal;
}

}  // namespace codespec
