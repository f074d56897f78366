#include "sources.h"

#include <algorithm>

namespace codespec {
namespace {

std::vector<Step> steps_of(const Proposal& p) {
  std::vector<Step> steps(static_cast<std::size_t>(p.size()));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto at = [&](Proposal::Column column) { return p.column(column)[i]; };
    steps[i] = {at(Proposal::kTokens),       at(Proposal::kCounts),    at(Proposal::kTotals),
                at(Proposal::kMatchLengths), at(Proposal::kAltTokens), at(Proposal::kAltCounts)};
  }
  return steps;
}

}  // namespace

Proposal BeforeCursor::draft(Tokens context, std::size_t n_kept, int n_max,
                             const Allowed& allowed) {
  SharedAutomaton& shared = *automaton_.get;
  if (context.size() < 2) {  // its tail would be the text itself
    return shared.quick([&](SuffixAutomaton& a) {
      n_tokens_ = static_cast<std::int64_t>(a.size());
      return a.draft(context, n_max, 1, allowed);
    });
  }
  // A long text is not compared token by token each time: that would take its way through memory.
  const auto [n_same, n_before] = shared.quick([&](SuffixAutomaton& a) {
    const bool is_ours = a.n_changes() == n_changes_ && n_kept > 0;
    return std::pair(is_ours ? n_kept : a.n_same(context), a.size());
  });
  shared.change(n_before + context.size() - 2 * n_same, [&](SuffixAutomaton& a) {
    if (a.size() != n_same) a.truncate(n_same);
    if (context.size() != n_same) a.extend(context.subspan(n_same));
    n_changes_ = a.n_changes();
  });
  n_tokens_ = static_cast<std::int64_t>(context.size());
  return shared.quick([&](SuffixAutomaton& a) { return a.draft_tail(n_max, 1, allowed); });
}

Proposal Files::draft(Tokens context, int n_max, const Allowed& allowed) {
  context = context.last(std::min(context.size(), static_cast<std::size_t>(kMaxDepth)));
  Proposal best(0);
  std::pair<std::int32_t, std::int32_t> best_rank{0, 0};
  for (std::size_t i = 0; i < parts_.size();) {
    const Part& part = parts_[i];
    Segment::Dead dead;
    if (part.dead) dead = {static_cast<const std::uint8_t*>(part.dead->data()), part.dead->size()};
    try {
      Proposal found = part.segment->draft(context, n_max, 1, dead, allowed);
      if (found.size() > 0) {
        const std::pair rank{found.column(Proposal::kMatchLengths)[0],
                             found.column(Proposal::kCounts)[0]};
        if (rank > best_rank) {
          best = std::move(found);
          best_rank = rank;
        }
      }
      ++i;
    } catch (const DamagedSegment&) {
      parts_.erase(parts_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return best;
}

Proposal Sources::draft(Member& member, Tokens context, std::size_t n_kept, int n_max,
                        const Allowed& allowed) {
  if (auto* before = std::get_if<BeforeCursor>(&member.kind)) {
    return before->draft(context, n_kept, n_max, allowed);
  }
  if (auto* automata = std::get_if<Automata>(&member.kind)) {
    return automata->matcher.draft(context, n_max, allowed);
  }
  return std::get<Files>(member.kind).draft(context, n_max, allowed);
}

Proposal Sources::draft(std::size_t i, Tokens context, int n_max, const Allowed& allowed) {
  is_read_ = false;
  return draft(members_.at(i), context, 0, n_max, allowed);
}

std::size_t Sources::ask(Tokens tail, Tokens path, int n_max) {
  const Tokens last = Tokens(context_).subspan(n_base_);
  const auto differs = std::ranges::mismatch(last, tail).in1;
  const std::size_t n_kept =
      is_read_ ? n_base_ + static_cast<std::size_t>(differs - last.begin()) : 0;
  context_.resize(n_base_);
  context_.insert(context_.end(), tail.begin(), tail.end());
  is_read_ = context_.size() >= 2;
  return ask_all(context_, n_kept, path, n_max);
}

std::size_t Sources::ask_last(int n_max) {
  const Tokens context(context_);
  return ask_all(context.last(std::min<std::size_t>(1, context.size())), 0, {}, n_max);
}

std::size_t Sources::ask_all(Tokens context, std::size_t n_kept, Tokens path, int n_max) {
  const std::size_t n_before = offers_.size();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Proposal found = draft(members_[i], context, n_kept, n_max, std::nullopt);
    if (found.size() > 0) offer(i, found.position, steps_of(found), path);
  }
  return offers_.size() - n_before;
}

void Sources::offer(std::size_t i, std::int64_t position, std::vector<Step> steps, Tokens path) {
  const Member& member = members_.at(i);
  std::int64_t distance = -1;
  if (const auto* before = std::get_if<BeforeCursor>(&member.kind)) {
    distance = before->distance(position);
  } else if (const auto* automata = std::get_if<Automata>(&member.kind);
             automata != nullptr && automata->is_after) {
    distance = position;
  }
  offers_.push_back({member.source, distance, {path.begin(), path.end()}, std::move(steps)});
}

}  // namespace codespec
