#include "edges.h"

#include <stdexcept>
#include <utility>

namespace codespec {
namespace {

constexpr unsigned kLog2MaxList = 3;  // larger blocks are hash tables

bool is_list(unsigned log2_capacity) { return log2_capacity <= kLog2MaxList; }

// Fibonacci hashing (Knuth, The Art of Computer Programming, vol. 3, 6.4).
std::size_t home(Token token, unsigned log2_capacity) {
  return (static_cast<std::uint32_t>(token) * 2654435769u) >> (32 - log2_capacity);
}

}  // namespace

const Edge* EdgePool::slot(const EdgeSet& set, Token token) const {
  const Edge* block = &slots_[set.offset()];
  if (is_list(set.log2_capacity())) {
    for (std::uint32_t i = 0; i < set.size(); ++i) {
      if (block[i].token == token) return block + i;
    }
    return nullptr;
  }
  const std::size_t mask = (std::size_t{1} << set.log2_capacity()) - 1;
  for (std::size_t i = home(token, set.log2_capacity());; i = (i + 1) & mask) {
    if (block[i].token == token) return block + i;
    if (block[i].token == kBreak) return nullptr;
  }
}

void EdgePool::insert(Edge* block, unsigned log2_capacity, Edge edge) {
  const std::size_t mask = (std::size_t{1} << log2_capacity) - 1;
  std::size_t i = is_list(log2_capacity) ? 0 : home(edge.token, log2_capacity);
  while (block[i].token != kBreak) i = (i + 1) & mask;
  block[i] = edge;
}

void EdgePool::add(EdgeSet& set, Token token, StateId target) {
  if (!set.is_single() && !set.has_block()) {
    set = EdgeSet(Edge{token, target});
    return;
  }
  // Lists fill up; hash tables stay a quarter empty, so that searches end.
  const std::uint32_t capacity = 1u << set.log2_capacity();
  const std::uint32_t limit = is_list(set.log2_capacity()) ? capacity : capacity / 4 * 3;
  if (set.is_single() || set.size() == limit) grow(set);
  insert(&slots_[set.offset()], set.log2_capacity(), {token, target});
  set.resize(set.size() + 1);
}

void EdgePool::redirect(EdgeSet& set, Token token, StateId target) {
  if (set.is_single()) {
    set = EdgeSet(Edge{token, target});
  } else {
    slot(set, token)->target = target;
  }
}

void EdgePool::remove(EdgeSet& set, Token token) {
  if (set.is_single()) {
    set = {};
    return;
  }
  Edge* block = &slots_[set.offset()];
  Edge* hole = slot(set, token);
  set.resize(set.size() - 1);
  if (is_list(set.log2_capacity())) {
    *hole = block[set.size()];  // the last one, perhaps itself
    block[set.size()] = {};
    return;
  }
  // Empty the slot, then put the rest of its cluster where searches will find it.
  const std::size_t mask = (std::size_t{1} << set.log2_capacity()) - 1;
  std::size_t i = static_cast<std::size_t>(hole - block);
  *hole = {};
  for (i = (i + 1) & mask; block[i].token != kBreak; i = (i + 1) & mask) {
    insert(block, set.log2_capacity(), std::exchange(block[i], {}));
  }
}

EdgeSet EdgePool::copy(const EdgeSet& set) {
  if (!set.has_block()) return set;
  const unsigned log2_capacity = set.log2_capacity();
  const EdgeSet twin(allocate(log2_capacity), log2_capacity, set.size());
  std::copy_n(&slots_[set.offset()], std::size_t{1} << log2_capacity, &slots_[twin.offset()]);
  return twin;
}

void EdgePool::release(EdgeSet& set) {
  if (set.has_block()) free(set);
  set = {};
}

void EdgePool::clear() {
  slots_ = {};
  free_ = make_free();
}

std::int32_t EdgePool::allocate(unsigned log2_capacity) {
  const std::size_t capacity = std::size_t{1} << log2_capacity;
  if (const std::int32_t offset = free_[log2_capacity]; offset != kNoState) {
    Edge* block = &slots_[static_cast<std::size_t>(offset)];
    free_[log2_capacity] = block->target;
    std::fill_n(block, capacity, Edge{});
    return offset;
  }
  const std::size_t offset = slots_.size();
  if (offset + capacity > INT32_MAX) throw std::length_error("the automaton is full");
  reserve_for(slots_, capacity);
  slots_.resize(offset + capacity);
  return static_cast<std::int32_t>(offset);
}

void EdgePool::free(const EdgeSet& set) {
  slots_[set.offset()].target =
      std::exchange(free_[set.log2_capacity()], static_cast<std::int32_t>(set.offset()));
}

void EdgePool::grow(EdgeSet& set) {
  const unsigned log2_capacity = set.is_single() ? 1 : set.log2_capacity() + 1;
  const std::uint32_t size = set.is_single() ? 1 : set.size();
  if (log2_capacity > EdgeSet::kSizeBits) throw std::length_error("the automaton is full");
  const EdgeSet bigger(allocate(log2_capacity), log2_capacity, size);
  for_each(set, [&](const Edge& edge) { insert(&slots_[bigger.offset()], log2_capacity, edge); });
  release(set);
  set = bigger;
}

}  // namespace codespec
