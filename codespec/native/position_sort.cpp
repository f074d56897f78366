#include "position_sort.h"

#include <array>
#include <bit>
#include <utility>

namespace codespec {
namespace {

class Sorter {
 public:
  Sorter(Tokens text, const KeyPacker& packer, std::span<std::uint32_t> positions)
      : text_(text), packer_(packer), positions_(positions) {}

  // Sorts positions_[begin:end], ascending and equal in the first `depth` tokens of context.
  void sort(std::size_t begin, std::size_t end, int depth) {
    groups_.push_back({begin, end, depth});
    while (!groups_.empty()) {
      const Group group = groups_.back();
      groups_.pop_back();
      if (group.end - group.begin <= kSmall) {
        sort_small(group);
      } else {
        sort_by_key(group);
      }
    }
  }

 private:
  struct Group {
    std::size_t begin, end;
    int depth;
  };
  struct Item {
    std::uint64_t key;
    std::uint32_t position;
    bool operator<(const Item& o) const {
      return key != o.key ? key < o.key : position < o.position;
    }
  };

  // Up to this size contexts are compared whole: one visit to each, however long they agree.
  static constexpr std::size_t kSmall = 16;
  // From this size on counting bytes is faster than comparing keys.
  static constexpr std::size_t kLarge = 256;
  static constexpr std::size_t kAhead = 24;

  void sort_by_key(const Group& group) {
    const std::size_t n = group.end - group.begin;
    items_.resize(n);
    const std::span positions = positions_.subspan(group.begin, n);
    for (std::size_t i = 0; i < n; ++i) {
      if (i + kAhead < n) prefetch(&text_[positions[i + kAhead] - 1] - group.depth);
      const Token* nearest = &text_[positions[i] - 1];
      const auto left = [nearest](int d) { return nearest[-d]; };
      items_[i] = {packer_.pack(left, group.depth), positions[i]};
    }
    if (n < kLarge) {
      std::sort(items_.begin(), items_.end());
    } else {
      radix_sort();
    }
    const int depth = group.depth + packer_.width();
    for (std::size_t i = 0, run = 0; i < n; ++i) {
      positions[i] = items_[i].position;
      if (i + 1 < n && items_[i + 1].key == items_[run].key) continue;
      if (i > run && depth < kMaxDepth && !packer_.ended(items_[run].key)) {
        groups_.push_back({group.begin + run, group.begin + i + 1, depth});
      }
      run = i + 1;
    }
  }

  // By the bytes of the keys, least significant first. Stable: positions stay ascending.
  void radix_sort() {
    spare_.resize(items_.size());
    std::uint64_t varying = 0;
    for (const Item& item : items_) varying |= item.key ^ items_[0].key;
    for (int shift = 0; shift < 64; shift += 8) {
      if ((varying >> shift & 255) == 0) continue;
      const auto digit = [shift](const Item& item) { return item.key >> shift & 255; };
      std::array<std::size_t, 256> ends{};
      for (const Item& item : items_) ++ends[digit(item)];
      std::size_t n = 0;
      for (std::size_t& end : ends) n += std::exchange(end, n);
      for (const Item& item : items_) spare_[ends[digit(item)]++] = item;
      items_.swap(spare_);
    }
  }

  void sort_small(const Group& group) {
    // Ask for all contexts at once: comparing them one by one would wait for each.
    for (std::size_t i = group.begin; i < group.end; ++i) {
      const Token* nearest = &text_[positions_[i] - 1] - group.depth;
      for (int d = 0; d < 48; d += 16) prefetch(nearest - d);
    }
    for (std::size_t i = group.begin + 1; i < group.end; ++i) {
      const std::uint32_t position = positions_[i];
      std::size_t j = i;
      for (; j > group.begin && less(position, positions_[j - 1], group.depth); --j) {
        positions_[j] = positions_[j - 1];
      }
      positions_[j] = position;
    }
  }

  bool less(std::uint32_t a, std::uint32_t b, int depth) const {
    const Token* left = &text_[a - 1];
    const Token* right = &text_[b - 1];
    for (int d = depth; d < kMaxDepth; ++d) {
      if (left[-d] != right[-d]) return left[-d] < right[-d];
      if (left[-d] == kBreak) break;
    }
    return a < b;
  }

  Tokens text_;
  const KeyPacker& packer_;
  std::span<std::uint32_t> positions_;
  std::vector<Item> items_;  // of the group in work
  std::vector<Item> spare_;
  std::vector<Group> groups_;
};

}  // namespace

std::vector<std::uint32_t> sort_positions(Tokens text, const KeyPacker& packer) {
  const auto has_context = [&](std::size_t i) {
    return text[i] != kBreak && text[i - 1] != kBreak;
  };
  Token max_token = 0;
  for (Token t : text) max_token = std::max(max_token, t);
  // Buckets by the nearest token, or its high bits where ids are large.
  const int shift =
      std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint32_t>(max_token))) - 20);
  const auto bucket = [&](std::size_t i) { return static_cast<std::size_t>(text[i - 1] >> shift); };
  std::vector<std::size_t> ends(static_cast<std::size_t>(max_token >> shift) + 1);
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (has_context(i)) ++ends[bucket(i)];
  }
  std::size_t n = 0;
  for (std::size_t& end : ends) n += std::exchange(end, n);
  std::vector<std::uint32_t> positions(n);
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (has_context(i)) positions[ends[bucket(i)]++] = static_cast<std::uint32_t>(i);
  }

  Sorter sorter(text, packer, positions);
  std::size_t begin = 0;
  for (std::size_t end : ends) {
    if (end - begin > 1) sorter.sort(begin, end, shift == 0 ? 1 : 0);
    begin = end;
  }
  return positions;
}

}  // namespace codespec
