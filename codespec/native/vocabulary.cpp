#include "vocabulary.h"

#include <algorithm>
#include <functional>

namespace codespec {
namespace {

constexpr std::size_t kMaxKnown = 64;

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::string_view>& pieces) {
  starts_.push_back(0);
  for (const std::string_view piece : pieces) {
    bytes_ += piece;
    starts_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    if (!piece.empty()) sorted_.push_back(static_cast<Token>(starts_.size() - 2));
  }
  std::ranges::stable_sort(sorted_, {}, [&](Token t) { return piece(t); });
}

std::string_view Vocabulary::piece(Token token) const {
  const auto id = static_cast<std::size_t>(token);
  if (token < 0 || id >= size()) return {};
  return std::string_view(bytes_).substr(starts_[id], starts_[id + 1] - starts_[id]);
}

std::string Vocabulary::text(Tokens tokens) const {
  std::string text;
  for (const Token token : tokens) text += piece(token);
  return text;
}

Tokens Vocabulary::compatible(std::string_view wanted) {
  const auto known = known_.find(wanted);
  if (known != known_.end()) return known->second;
  if (known_.size() >= kMaxKnown) known_.clear();
  std::vector<Token>& found = known_[std::string(wanted)];
  const auto bytes = [&](Token t) { return piece(t); };
  for (std::size_t n = 1; n < wanted.size(); ++n) {
    const auto equal = std::ranges::equal_range(sorted_, wanted.substr(0, n), {}, bytes);
    found.insert(found.end(), equal.begin(), equal.end());
  }
  const auto start = [&](Token t) { return piece(t).substr(0, wanted.size()); };
  const auto longer = std::ranges::equal_range(sorted_, wanted, {}, start);
  found.insert(found.end(), longer.begin(), longer.end());
  std::ranges::sort(found);
  return found;
}

std::vector<Token> Vocabulary::containing(std::string_view part) const {
  std::vector<Token> found;
  std::ranges::copy_if(sorted_, std::back_inserter(found),
                       [&](Token t) { return piece(t).find(part) != std::string_view::npos; });
  return found;
}

}  // namespace codespec
