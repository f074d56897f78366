#include "sources.h"

#include <algorithm>

namespace codespec {

std::vector<Step> steps_of(const Proposal& p) {
  std::vector<Step> steps(static_cast<std::size_t>(p.size()));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto at = [&](Proposal::Column column) { return p.column(column)[i]; };
    steps[i] = {at(Proposal::kTokens),       at(Proposal::kCounts),    at(Proposal::kTotals),
                at(Proposal::kMatchLengths), at(Proposal::kAltTokens), at(Proposal::kAltCounts)};
  }
  return steps;
}

Proposal BeforeCursor::draft_anywhere(Tokens context, int n_max, const Allowed& allowed) {
  return automaton_.get->quick([&](SuffixAutomaton& a) {
    n_tokens_ = static_cast<std::int64_t>(a.size());
    return a.draft(context, n_max, 1, allowed);
  });
}

Proposal BeforeCursor::draft(Tokens base, Tokens tail, int n_max, const Allowed& allowed) {
  SharedAutomaton& shared = *automaton_.get;
  const std::size_t n = base.size() + tail.size();
  if (n < 2) return draft_anywhere(base.empty() ? tail : base, n_max, allowed);  // its tail is all
  // A long text is not compared token by token each time: that would read all of its memory.
  const auto [n_same, n_before] = shared.quick([&](SuffixAutomaton& a) {
    const std::size_t n_base = a.n_changes() == n_changes_ ? base.size() : a.n_same(base);
    return std::pair(n_base < base.size() ? n_base : n_base + a.n_same(tail, n_base), a.size());
  });
  shared.change(n_before + n - 2 * n_same, [&](SuffixAutomaton& a) {
    if (a.size() != n_same) a.truncate(n_same);
    if (n_same < base.size()) a.extend(base.subspan(n_same));
    if (a.size() < n) a.extend(tail.subspan(a.size() - base.size()));
    n_changes_ = a.n_changes();
  });
  n_tokens_ = static_cast<std::int64_t>(n);
  return shared.quick([&](SuffixAutomaton& a) { return a.draft_tail(n_max, 1, allowed); });
}

Proposal Files::draft(Tokens context, int n_max, const Allowed& allowed) {
  context = context.last(std::min(context.size(), static_cast<std::size_t>(kMaxDepth)));
  Proposal best(0);
  std::pair<std::int32_t, std::int32_t> best_rank{0, 0};
  for (Part& part : parts_) {
    if (part.segment == nullptr) continue;
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
    } catch (const DamagedSegment&) {
      part.segment = nullptr;
    }
  }
  return best;
}

Sources::Sources(TokenArray base) : base_(std::move(base)) {
  const Tokens all = as_span(base_);
  const Tokens end = all.last(std::min(all.size(), static_cast<std::size_t>(kMaxDepth)));
  recent_.assign(end.begin(), end.end());
  n_recent_base_ = end.size();
}

void Sources::recent(Tokens tail) {
  recent_.resize(n_recent_base_);
  recent_.insert(recent_.end(), tail.begin(), tail.end());
}

Proposal Sources::draft(Member& member, Tokens tail, int n_max, const Allowed& allowed) {
  if (auto* before = std::get_if<BeforeCursor>(&member.kind)) {
    return before->draft(as_span(base_), tail, n_max, allowed);
  }
  if (auto* automata = std::get_if<Automata>(&member.kind)) {
    return automata->matcher.draft(Tokens(recent_).first(n_recent_base_), tail, n_max, allowed);
  }
  return std::get<Files>(member.kind).draft(recent_, n_max, allowed);
}

Proposal Sources::draft(std::size_t i, Tokens tail, int n_max, const Allowed& allowed) {
  recent(tail);
  return draft(members_.at(i), tail, n_max, allowed);
}

std::vector<std::pair<std::size_t, Proposal>> Sources::draft_all(Tokens tail, int n_max,
                                                                 const Allowed& allowed) {
  recent(tail);
  std::vector<std::pair<std::size_t, Proposal>> all;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Proposal found = draft(members_[i], tail, n_max, allowed);
    if (found.size() > 0) all.emplace_back(i, std::move(found));
  }
  return all;
}

std::size_t Sources::ask(Tokens tail, Tokens path, int n_max) {
  const auto all = draft_all(tail, n_max, std::nullopt);
  for (const auto& [i, found] : all) offer(i, found.position, steps_of(found), path);
  return all.size();
}

std::size_t Sources::ask_last(int n_max) {
  const std::vector<Token> last(recent_.end() - std::min<std::ptrdiff_t>(1, std::ssize(recent_)),
                                recent_.end());
  const std::size_t n_before = offers_.size();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Kind& kind = members_[i].kind;
    auto* before = std::get_if<BeforeCursor>(&kind);
    auto* automata = std::get_if<Automata>(&kind);
    const Proposal found = before     ? before->draft_anywhere(last, n_max, std::nullopt)
                           : automata ? automata->matcher.draft_anywhere(last, n_max, std::nullopt)
                                      : std::get<Files>(kind).draft(last, n_max, std::nullopt);
    if (found.size() > 0) offer(i, found.position, steps_of(found), {});
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
