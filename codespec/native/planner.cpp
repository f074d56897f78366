#include "planner.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <queue>
#include <utility>

namespace codespec {
namespace {

constexpr std::size_t kAfter = 64;  // tokens after the cursor that a draft is compared with
constexpr float kHitStep = 0.1f, kSourceHitStep = 0.2f;

}  // namespace

void Planner::clear() {
  nodes_.clear();
  first_root_ = -1;
  std::ranges::fill(said_, kBreak);
}

// ---- the document -------------------------------------------------------------------------------

void Planner::see(Token token) {
  ++n_seen_;
  last_ = token;
  in_line_ = class_of(token) == kLineEnd ? 0 : in_line_ + 1;
  const auto id = static_cast<std::size_t>(token);
  if (token >= 0 && id < last_seen_.size()) last_seen_[id] = n_seen_;
}

void Planner::begin(Tokens before, Tokens after) {
  clear();
  outcomes_.clear();
  after_.assign(after.begin(), after.begin() + std::min(after.size(), kAfter));
  last_seen_.assign(classes_->size(), kNever);
  for (const Token token : after) {
    const auto id = static_cast<std::size_t>(token);
    if (token >= 0 && id < last_seen_.size()) last_seen_[id] = kAfterOnly;
  }
  n_seen_ = n_emitted_ = in_line_ = 0;
  unended_.clear();
  last_ = kBreak;
  for (const Token token : before) see(token);
}

std::uint8_t Planner::class_of(Token token) const {
  const auto id = static_cast<std::size_t>(token);
  return token >= 0 && id < classes_->size() ? (*classes_)[id] : 0;
}

int Planner::recency(Token token) const {
  const auto id = static_cast<std::size_t>(token);
  const std::int32_t seen = token >= 0 && id < last_seen_.size() ? last_seen_[id] : kNever;
  return seen > 0 ? n_seen_ - seen + 1 : seen;
}

// ---- the tree of all proposals ------------------------------------------------------------------

Planner::Index Planner::child(Index parent, Token token) {
  Index last = -1;
  for (Index i = first_child(parent); i >= 0; i = at(i).next_sibling) {
    if (at(i).token == token) return i;
    last = i;
  }
  const auto fresh = static_cast<Index>(nodes_.size());
  nodes_.emplace_back();
  nodes_.back().token = token;
  nodes_.back().parent = parent;
  Index& link = last >= 0     ? at(last).next_sibling
                : parent >= 0 ? at(parent).first_child
                              : first_root_;
  link = fresh;
  return fresh;
}

Planner::Index Planner::find(Tokens path) const {
  Index node = kRoot;
  for (const Token token : path) {
    Index i = first_child(node);
    while (i >= 0 && at(i).token != token) i = at(i).next_sibling;
    if (i < 0) return kNowhere;
    node = i;
  }
  return node;
}

// The strongest support speaks for a token; of other sources the longest match is remembered.
void Planner::support(Node& node, Evidence evidence) {
  Evidence& known = node.evidence;
  const bool same_source = evidence.source == known.source;
  const bool is_stronger =
      evidence.match_length > known.match_length && (!evidence.is_runner_up || known.is_runner_up);
  if (node.sources == 0) {
    known = evidence;
  } else if (is_stronger) {
    evidence.second_length = same_source ? known.second_length : known.match_length;
    known = evidence;
  } else if (!same_source) {
    known.second_length = std::max(known.second_length, evidence.match_length);
  }
  node.sources |= 1u << evidence.source;
}

void Planner::insert(const Offer& offer, Index root, int depth, int n_max, bool with_runner_ups) {
  Index node = root;
  Evidence e;
  e.source = offer.source;
  e.distance = offer.distance;
  e.depth = depth;
  for (const Step& step : offer.steps) {
    if (e.depth == n_max) break;
    const auto total = static_cast<float>(std::max(step.total, 1));
    e.match_length = step.match_length;
    e.total = step.total;
    if (with_runner_ups && step.alt_token >= 0) {
      Evidence other = e;
      other.is_runner_up = true;
      other.ratio = static_cast<float>(step.alt_count) / total;
      other.ratio_lowest = std::min(e.ratio_lowest, other.ratio);
      support(at(child(node, step.alt_token)), other);
    }
    e.ratio = static_cast<float>(step.count) / total;
    e.ratio_lowest = std::min(e.ratio_lowest, e.ratio);
    node = child(node, step.token);
    support(at(node), e);
    e.ratio_before = e.ratio;
    ++e.depth;
  }
}

// ---- probabilities ------------------------------------------------------------------------------

// Evidence that depends on the whole tree.
void Planner::complete(Index i, const Node* parent) {
  Node& node = at(i);
  Evidence& e = node.evidence;
  e.n_supports = std::popcount(node.sources);
  e.n_emitted = n_emitted_ + e.depth;
  e.token_class = class_of(node.token);
  e.class_before = class_of(parent == nullptr ? last_ : parent->token);
  e.in_line = parent == nullptr            ? in_line_
              : e.class_before == kLineEnd ? 0
                                           : parent->evidence.in_line + 1;
  const auto repeats = [&](int k) {
    const auto at = static_cast<std::size_t>(k);
    return at < after_.size() && after_[at] == node.token;
  };
  const int n_before = parent == nullptr ? 0 : parent->evidence.n_repeats_right;
  e.n_repeats_right = repeats(n_before) ? n_before + 1 : repeats(0) ? 1 : 0;
  e.recency = recency(node.token);
  e.hit_rate = hit_rate_;
  e.source_hit_rate = source_hit_rates_[static_cast<std::size_t>(e.source)];
  for (Index s = first_child(node.parent); s >= 0; s = at(s).next_sibling) {
    if (s != i) e.rival_length = std::max(e.rival_length, at(s).evidence.match_length);
  }
}

void Planner::weigh() {
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    Node& node = nodes_[k];
    complete(static_cast<Index>(k), node.parent < 0 ? nullptr : &at(node.parent));
    node.features = model.features(node.evidence);
    node.prob = model.probability(node.features);
  }
  share(first_root_);
  for (const Node& node : nodes_) share(node.first_child);
  for (Node& node : nodes_) {
    const Node* parent = node.parent < 0 ? nullptr : &at(node.parent);
    node.path_prob = node.prob * (parent == nullptr ? 1.0f : parent->path_prob);
    node.path_prob *= goes_on(node.evidence);
    node.expected = node.path_prob + (parent == nullptr ? 0.0f : parent->expected);
  }
}

float Planner::goes_on(const Evidence& e) const {
  return 1.0f - ends.probability(e.token_class == kLineEnd, static_cast<std::size_t>(e.n_emitted));
}

// Siblings exclude one another: together they are certain at most.
void Planner::share(Index first) {
  float sum = 0;
  for (Index i = first; i >= 0; i = at(i).next_sibling) sum += at(i).prob;
  for (Index i = first; i >= 0 && sum > 1; i = at(i).next_sibling) at(i).prob /= sum;
}

// ---- the choice ---------------------------------------------------------------------------------

Draft Planner::plan(std::span<const Offer> offers, const Limits& limits) {
  clear();
  outcomes_.clear();
  const int n_max = std::min(limits.n_max, static_cast<int>(limits.costs.size()) - 1);
  if (n_max <= 0) return {};
  for (const Offer& offer : offers) {
    const Index root = find(offer.path);
    if (offer.steps.empty() || root == kNowhere) continue;
    if (root == kRoot) said_[static_cast<std::size_t>(offer.source)] = offer.steps[0].token;
    insert(offer, root, static_cast<int>(offer.path.size()), n_max, limits.max_leaves > 1);
  }
  weigh();
  Limits bounded = limits;
  bounded.n_max = n_max;
  double rate = 1.0 / limits.costs[0];
  std::vector<Index> chosen = best_chain(bounded, rate);
  if (limits.max_leaves > 1) {
    if (auto tree = best_tree(bounded, rate); !tree.empty()) chosen = std::move(tree);
  }
  return draft(chosen);
}

std::vector<Planner::Index> Planner::best_chain(const Limits& limits, double& rate) const {
  Index best = -1;
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    const Node& node = nodes_[k];
    double cost = limits.costs[static_cast<std::size_t>(node.evidence.depth) + 1];
    if (limits.again > 0) cost += limits.again * n_again(node, limits.n_tail);
    if (const double r = (1.0 + node.expected) / cost; r > rate) {
      rate = r;
      best = static_cast<Index>(k);
    }
  }
  std::vector<Index> chain;
  for (; best >= 0; best = at(best).parent) chain.push_back(best);
  std::ranges::reverse(chain);
  return chain;
}

// Expected number of tokens to recompute after a chain that ends there: this pass's committed
// tokens and the accepted ones, unless all are accepted.
double Planner::n_again(const Node& end, int n_tail) const {
  const double whole = end.path_prob, before = end.expected - end.path_prob;
  return n_tail * (1.0 - whole) + before - end.evidence.depth * whole;
}

// Path probabilities fall along a path, so the n likeliest nodes are a tree, and of all trees of n
// the one with the most expected accepted tokens.
std::vector<Planner::Index> Planner::best_tree(const Limits& limits, double& rate) const {
  std::priority_queue<std::pair<float, Index>> open;  // the earlier of two equals is pushed as more
  const auto push = [&](Index first) {
    for (Index i = first; i >= 0; i = at(i).next_sibling) open.emplace(at(i).path_prob, -i);
  };
  std::vector<std::uint8_t> is_inner(nodes_.size(), 0);
  std::vector<Index> taken;
  std::size_t best = 0;
  double expected = 1.0;
  int n_leaves = 0;
  push(first_root_);
  while (!open.empty() && static_cast<int>(taken.size()) < limits.n_max) {
    const Index i = -open.top().second;
    open.pop();
    const Node& node = at(i);
    const bool lengthens = node.parent >= 0 && !is_inner[static_cast<std::size_t>(node.parent)];
    if (!lengthens && n_leaves == limits.max_leaves) continue;
    n_leaves += lengthens ? 0 : 1;
    if (node.parent >= 0) is_inner[static_cast<std::size_t>(node.parent)] = 1;
    taken.push_back(i);
    expected += node.path_prob;
    if (const double r = expected / limits.costs[taken.size()]; r > rate) {
      rate = r;
      best = taken.size();
    }
    push(node.first_child);
  }
  taken.resize(best);
  std::ranges::sort(taken);
  return taken;
}

Draft Planner::draft(const std::vector<Index>& chosen) const {
  Draft out;
  std::vector<std::int32_t> place(nodes_.size(), -1);
  for (const Index i : chosen) {
    const Node& node = at(i);
    place[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(out.tokens.size());
    out.tokens.push_back(node.token);
    out.parents.push_back(node.parent < 0 ? -1 : place[static_cast<std::size_t>(node.parent)]);
    out.probs.push_back(node.prob);
    out.sources.push_back(static_cast<std::int8_t>(node.evidence.source));
    out.ends.push_back(node.first_child < 0 ? 1 : 0);
  }
  return out;
}

// ---- learning -----------------------------------------------------------------------------------

void Planner::learn(Tokens known, std::size_t n_emitted) {
  outcomes_.clear();
  for (std::size_t s = 0; s < said_.size(); ++s) {
    if (said_[s] < 0 || known.empty()) continue;
    const float hit = said_[s] == known[0] ? 1.0f : 0.0f;
    source_hit_rates_[s] += kSourceHitStep * (hit - source_hit_rates_[s]);
  }
  Index parent = -1;
  for (std::size_t depth = 0; depth < known.size(); ++depth) {
    if (known[depth] == kBreak) break;  // the text ended
    Index right = -1, likeliest = -1;
    for (Index i = first_child(parent); i >= 0; i = at(i).next_sibling) {
      const Node& node = at(i);
      const bool accepted = node.token == known[depth];
      if (accepted) right = i;
      if (likeliest < 0 || node.prob > at(likeliest).prob) likeliest = i;
      model.learn(node.features, accepted);
      outcomes_.push_back({static_cast<std::int8_t>(node.evidence.source), accepted,
                           node.evidence.match_length, node.prob, node.features});
    }
    if (depth == 0 && likeliest >= 0) {
      hit_rate_ += kHitStep * ((likeliest == right ? 1.0f : 0.0f) - hit_rate_);
    }
    if (right < 0) break;
    parent = right;
  }
  // The text went on, so it did not end behind any of the tokens before.
  ended(static_cast<std::size_t>(n_emitted_) + 1);
  for (const Token token : known.first(std::min(n_emitted, known.size()))) {
    see(token);
    unended_.push_back(class_of(token));
  }
  n_emitted_ += static_cast<int>(n_emitted);
  clear();
}

void Planner::ended(std::size_t n_emitted) {
  std::size_t n_before = static_cast<std::size_t>(n_emitted_) - unended_.size();
  for (const std::uint8_t kind : unended_) {
    if (n_before >= n_emitted) break;
    ends.learn(kind == kLineEnd, n_before, n_before + 1 == n_emitted);
    ++n_before;
  }
  unended_.clear();
}

}  // namespace codespec
