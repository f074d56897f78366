#include "automaton.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace codespec {
namespace {

constexpr std::size_t kUsualLength = 8;  // most matches are shorter

}  // namespace

SuffixAutomaton::SuffixAutomaton(int max_depth) : max_depth_(max_depth) {
  if (max_depth < 1 || max_depth > kMaxDepth) {
    throw std::invalid_argument("max_depth must be 1 to 64 tokens");
  }
  clear();
}

void SuffixAutomaton::clear() {
  text_ = {};
  edges_.clear();
  growth_ = {};
  wholes_ = {};
  cursors_ = {};
  originals_ = {};
  last_ends_ = {};
  states_.assign(1, State{});
}

std::size_t SuffixAutomaton::n_bytes() const {
  const std::size_t n_ids = wholes_.capacity() + cursors_.capacity() + originals_.capacity();
  return text_.capacity() * sizeof(Token) + states_.capacity() * sizeof(State) + edges_.n_bytes() +
         growth_.capacity() + n_ids * sizeof(StateId) + last_ends_.n_bytes();
}

void SuffixAutomaton::extend(Tokens tokens) {
  ++n_changes_;
  if (tokens.size() > kMaxSize - size()) {
    throw std::overflow_error("an automaton holds at most 2**30 tokens");
  }
  try {
    reserve_for(text_, tokens.size());
    reserve_for(growth_, tokens.size());
    // A token of code adds 1.5 states on average. Growing to there copies, and copies again.
    reserve_for(states_, tokens.size() + tokens.size() * 3 / 8);
    for (Token token : tokens) push(token);
  } catch (...) {  // out of memory in the middle of a token: the states are not consistent
    clear();
    throw;
  }
}

void SuffixAutomaton::truncate(std::size_t n) {
  if (n > size()) throw std::invalid_argument("truncate to more tokens than there are");
  ++n_changes_;
  if (n == 0) return clear();
  while (size() > n) pop();
}

std::size_t SuffixAutomaton::n_same(Tokens tokens, std::size_t start) const {
  const Tokens here = text().subspan(std::min(start, size()));
  return static_cast<std::size_t>(std::ranges::mismatch(here, tokens).in1 - here.begin());
}

void SuffixAutomaton::assign(Tokens tokens) {
  const std::size_t n = n_same(tokens);
  if (n < size()) truncate(n);
  if (n < tokens.size()) extend(tokens.subspan(n));
}

// ---- construction -------------------------------------------------------------------------------

void SuffixAutomaton::push(Token token) {
  const auto end = static_cast<std::int32_t>(size());
  if (token < 0) {
    text_.push_back(kBreak);
    growth_.push_back({});
    return;
  }
  Match m = cursor();
  StateId p = ends().whole;
  Growth growth{};
  const auto longest = [&](StateId q) {  // the state of p's longest string followed by `token`
    growth.cloned = at(q).length > at(p).length + 1;
    return growth.cloned ? clone(p, token, q) : q;
  };
  Ends after;
  if (const StateId q = target(p, token); q != kNoState) {
    after.whole = longest(q);  // the text since the break begins as an earlier one
  } else {
    growth.fresh = true;
    after.whole = add_state(at(p).length + 1, 0);
    at(after.whole).last_end = end;
    for (; p != kNoState && target(p, token) == kNoState; p = at(p).link) {
      edges_.add(at(p).edges, token, after.whole);
    }
    if (p != kNoState) {
      const StateId link = longest(target(p, token));
      at(after.whole).link = link;
    }
  }
  // The split may have taken the cursor's string out of its state.
  if (m.state != 0 && m.length <= at(at(m.state).link).length) m.state = at(m.state).link;
  after.cursor = advance(m, token, max_depth_ + 1).state;

  growth.repeats = !growth.fresh || after.cursor != after.whole;
  if (!growth.fresh) {
    reserve_for(wholes_, 1);
    wholes_.push_back(after.whole);
  }
  if (growth.repeats) {
    reserve_for(cursors_, 1);
    cursors_.push_back(after.cursor);
  }
  text_.push_back(token);
  growth_.push_back(growth);
  count_suffixes(after.cursor, end);
}

StateId SuffixAutomaton::add_state(std::int32_t length, StateId link) {
  reserve_for(states_, 1);
  states_.push_back({length, link, 0, -1, {}});
  return static_cast<StateId>(states_.size() - 1);
}

// Splits off the strings of `original` that end a place more than the others: those of at most
// length(parent) + 1 tokens.
StateId SuffixAutomaton::clone(StateId parent, Token token, StateId original) {
  const StateId copy = add_state(at(parent).length + 1, at(original).link);
  at(copy).count = at(original).count;
  at(copy).last_end = at(original).last_end;
  at(copy).edges = edges_.copy(at(original).edges);
  for (StateId p = parent; p != kNoState && target(p, token) == original; p = at(p).link) {
    edges_.redirect(at(p).edges, token, copy);
  }
  at(original).link = copy;
  reserve_for(originals_, 1);
  originals_.push_back(original);
  return copy;
}

// Keeps count and last_end of every suffix of at most max_depth + 1 tokens: one more than can be
// matched, so that the count of a full match with the token after it is exact, too. Links shorten
// by at least a token each, so this is the bound on the work, also in `aaaa...`.
void SuffixAutomaton::count_suffixes(StateId cursor, std::int32_t end) {
  std::array<std::int32_t, kMaxDepth + 1> values;
  std::array<std::uint8_t, kMaxDepth + 1> lengths;
  int n_runs = 0;
  for (StateId s = cursor; s != 0; s = at(s).link) {
    State& state = at(s);
    if (state.count++ > 0) {
      // Shorter suffixes occurred later or at the same place, mostly the same.
      if (n_runs > 0 && values[n_runs - 1] == state.last_end) {
        ++lengths[n_runs - 1];
      } else {
        values[n_runs] = state.last_end;
        lengths[n_runs++] = 1;
      }
    }
    state.last_end = end;
  }
  last_ends_.reserve_for_more(2 * static_cast<std::size_t>(n_runs));
  while (n_runs-- > 0) {  // reversed: undoing walks the same way and pops
    last_ends_.push(static_cast<std::uint32_t>(end - values[n_runs]));
    last_ends_.push(lengths[n_runs]);
  }
}

// ---- undoing ------------------------------------------------------------------------------------

void SuffixAutomaton::pop() {
  const Token token = text_.back();
  const Growth growth = growth_.back();
  const Ends after = ends();
  text_.pop_back();
  growth_.pop_back();
  if (token == kBreak) return;
  if (!growth.fresh) wholes_.pop_back();
  if (growth.repeats) cursors_.pop_back();

  uncount_suffixes(after.cursor, static_cast<std::int32_t>(size()));
  const auto newest = static_cast<StateId>(states_.size() - 1);
  // Links first: the walks below then take the way that `push` took.
  if (growth.cloned) at(originals_.back()).link = at(newest).link;
  StateId p = ends(growth).whole;
  if (growth.fresh) {
    for (; p != kNoState && target(p, token) == after.whole; p = at(p).link) {
      edges_.remove(at(p).edges, token);
    }
  }
  if (growth.cloned) unclone(p, token, newest);
  if (growth.fresh) {  // it has no transitions: nothing came after it. Once it may have had many
    edges_.release(at(after.whole).edges);
    states_.pop_back();
  }
}

void SuffixAutomaton::unclone(StateId parent, Token token, StateId copy) {
  for (StateId p = parent; p != kNoState && target(p, token) == copy; p = at(p).link) {
    edges_.redirect(at(p).edges, token, originals_.back());
  }
  originals_.pop_back();
  edges_.release(at(copy).edges);
  states_.pop_back();
}

void SuffixAutomaton::uncount_suffixes(StateId cursor, std::int32_t end) {
  std::uint32_t n_left = 0;
  std::int32_t value = 0;
  for (StateId s = cursor; s != 0; s = at(s).link) {
    State& state = at(s);
    if (--state.count == 0) continue;  // new with this token: about to go
    if (n_left == 0) {
      n_left = last_ends_.pop();
      value = end - static_cast<std::int32_t>(last_ends_.pop());
    }
    state.last_end = value;
    --n_left;
  }
}

// ---- lookup -------------------------------------------------------------------------------------

// Ends of the text, when the newest states belong to `later`, a token no longer in it.
SuffixAutomaton::Ends SuffixAutomaton::ends(Growth later) const {
  if (text_.empty() || text_.back() == kBreak) return {};
  const Growth growth = growth_.back();
  if (!growth.fresh) return {wholes_.back(), cursors_.back()};
  const std::size_t n_newer = (later.fresh ? 1 : 0) + (later.cloned ? 1 : 0);
  const auto fresh = static_cast<StateId>(states_.size() - n_newer - (growth.cloned ? 2 : 1));
  return {fresh, growth.repeats ? cursors_.back() : fresh};
}

SuffixAutomaton::Match SuffixAutomaton::cursor() const {
  const auto [whole, cursor] = ends();
  return {cursor, std::min(at(whole).length, max_depth_ + 1)};
}

// The match followed by `token`, which must follow it somewhere, cut to its last `depth` tokens.
// Only a match of that many is too long then, by a token: any other need not look at a link, which
// may be anywhere in memory.
SuffixAutomaton::Match SuffixAutomaton::advance(Match m, Token token, std::int32_t depth) const {
  StateId s = target(m.state, token);
  if (m.length == depth && at(at(s).link).length >= depth) s = at(s).link;
  return {s, std::min(m.length + 1, depth)};
}

SuffixAutomaton::Match SuffixAutomaton::find(Tokens context) const {
  const std::size_t n = std::min(context.size(), static_cast<std::size_t>(max_depth_));
  std::size_t n_read = std::min(n, kUsualLength);
  while (true) {
    Match m;
    for (const Token token : context.last(n_read)) m = grow(m, token);
    // A match of not all that was read would be no longer, had more been read.
    if (n_read == n || static_cast<std::size_t>(m.length) < n_read) return m;
    n_read = n;
  }
}

SuffixAutomaton::Match SuffixAutomaton::grow(Match m, Token token) const {
  if (token < 0) return {};
  while (m.state != 0 && target(m.state, token) == kNoState) {
    m.state = at(m.state).link;
    m.length = at(m.state).length;
  }
  return target(m.state, token) != kNoState ? advance(m, token, max_depth_) : m;
}

std::int32_t SuffixAutomaton::count(Tokens string) const {
  const Match m = find(string);
  return static_cast<std::size_t>(m.length) == string.size() ? at(m.state).count : 0;
}

std::vector<std::pair<Token, std::int32_t>> SuffixAutomaton::followers(Tokens string) const {
  std::vector<std::pair<Token, std::int32_t>> found;
  const Match m = find(string);
  if (static_cast<std::size_t>(m.length) != string.size()) return found;
  edges_.for_each(at(m.state).edges,
                  [&](const Edge& edge) { found.emplace_back(edge.token, at(edge.target).count); });
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return found;
}

Proposal SuffixAutomaton::draft(Tokens context, int n_max, int min_length,
                                const Allowed& allowed) const {
  return follow(find(context), n_max, min_length, allowed);
}

Proposal SuffixAutomaton::draft_tail(int n_max, int min_length, const Allowed& allowed) const {
  Match m = cursor();
  if (m.length > max_depth_) {
    m.length = max_depth_;
    if (at(at(m.state).link).length >= max_depth_) m.state = at(m.state).link;
  }
  return follow(m, n_max, min_length, allowed);
}

Election SuffixAutomaton::vote(StateId s, const Allowed& allowed) const {
  Election election;
  edges_.for_each(at(s).edges, [&](const Edge& edge) {
    const State& next = at(edge.target);
    if (allows(allowed, edge.token)) election.add({edge.token, next.count, next.last_end});
  });
  return election;
}

Proposal SuffixAutomaton::follow(Match m, int n_max, int min_length, const Allowed& allowed) const {
  Proposal proposal(n_max);
  while (!proposal.full()) {
    Election election;
    while (m.state != 0 && m.length >= min_length) {
      election = vote(m.state, proposal.size() == 0 ? allowed : std::nullopt);
      if (election.total > 0) break;
      // Nothing follows a string that stands before breaks and the end only: take a shorter one.
      m.state = at(m.state).link;
      m.length = at(m.state).length;
    }
    if (election.total == 0) break;
    if (proposal.size() == 0) {
      proposal.n_matches = at(m.state).count;
      proposal.position = election.best.tie_break;
    }
    proposal.push(election.step(m.length));
    m = advance(m, election.best.token, max_depth_);
  }
  return proposal;
}

}  // namespace codespec
