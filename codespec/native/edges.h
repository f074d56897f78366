// Transitions of the suffix automaton's states, in little memory: most states have exactly one.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "tokens.h"

namespace codespec {

using StateId = std::int32_t;
inline constexpr StateId kNoState = -1;

struct Edge {
  Token token = kBreak;
  StateId target = kNoState;
};

// The transitions of one state, in 8 bytes. A single one is held here; several are held in a block
// of an EdgePool: up to 8 in a plain list, more in a hash table.
class EdgeSet {
 public:
  EdgeSet() = default;
  explicit EdgeSet(Edge single)
      : head_(static_cast<std::uint32_t>(single.token)), body_(single.target) {}
  EdgeSet(std::int32_t offset, unsigned log2_capacity, std::uint32_t size)
      : head_(kBlock | log2_capacity << kSizeBits | size), body_(offset) {}

  static constexpr unsigned kSizeBits = 26;

  bool empty() const { return !is_single() && size() == 0; }
  bool is_single() const { return head_ < kBlock; }
  Edge single() const { return {static_cast<Token>(head_), body_}; }

  // Size of its block; 0 without one.
  std::uint32_t size() const { return head_ & ((1u << kSizeBits) - 1); }
  unsigned log2_capacity() const { return head_ >> kSizeBits & 31; }
  std::size_t offset() const { return static_cast<std::size_t>(body_); }
  void resize(std::uint32_t size) { head_ = kBlock | log2_capacity() << kSizeBits | size; }
  bool has_block() const { return head_ >> kSizeBits > kBlock >> kSizeBits; }

 private:
  static constexpr std::uint32_t kBlock = std::uint32_t{1} << 31;
  std::uint32_t head_ = kBlock;  // a token, or kBlock, capacity and size
  std::int32_t body_ = 0;        // its target, or the offset of the block
};

// Owner of the blocks of all states of one automaton. Blocks are powers of two and are reused.
class EdgePool {
 public:
  // Target of the transition on `token`, kNoState where there is none. Constant expected time.
  StateId find(const EdgeSet& set, Token token) const {
    if (set.is_single()) return set.single().token == token ? set.single().target : kNoState;
    if (!set.has_block()) return kNoState;
    const Edge* edge = slot(set, token);
    return edge != nullptr ? edge->target : kNoState;
  }

  void add(EdgeSet& set, Token token, StateId target);       // no such transition yet
  void redirect(EdgeSet& set, Token token, StateId target);  // an existing one
  void remove(EdgeSet& set, Token token);                    // an existing one
  EdgeSet copy(const EdgeSet& set);
  void release(EdgeSet& set);
  void clear();

  template <typename Visit>
  void for_each(const EdgeSet& set, Visit visit) const {
    if (set.is_single()) return visit(set.single());
    if (!set.has_block()) return;
    const Edge* block = &slots_[set.offset()];
    const Edge* end = block + (std::size_t{1} << set.log2_capacity());
    for (; block != end; ++block) {
      if (block->token != kBreak) visit(*block);
    }
  }

  std::size_t n_bytes() const { return slots_.capacity() * sizeof(Edge); }

 private:
  const Edge* slot(const EdgeSet& set, Token token) const;
  Edge* slot(const EdgeSet& set, Token token) {
    return const_cast<Edge*>(std::as_const(*this).slot(set, token));
  }
  static void insert(Edge* block, unsigned log2_capacity, Edge edge);
  std::int32_t allocate(unsigned log2_capacity);
  void free(const EdgeSet& set);
  void grow(EdgeSet& set);

  std::vector<Edge> slots_;
  // Head of the list of free blocks of each size; the first slot's target links to the next.
  std::array<std::int32_t, 32> free_ = make_free();

  static constexpr std::array<std::int32_t, 32> make_free() {
    std::array<std::int32_t, 32> heads{};
    heads.fill(kNoState);
    return heads;
  }
};

// Keeps a sixteenth in reserve: the standard library's factor 2 would be much of the memory.
template <typename T>
void reserve_for(std::vector<T>& v, std::size_t n_more) {
  const std::size_t need = v.size() + n_more;
  if (need > v.capacity()) v.reserve(need + need / 16 + 16);
}

}  // namespace codespec
