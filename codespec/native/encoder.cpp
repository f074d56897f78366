#include "encoder.h"

#include <stdexcept>
#include <utility>

namespace codespec {
namespace {

constexpr std::size_t kMaxBytes = (1U << 29) - 1;  // of which the tokens can be counted
constexpr std::size_t kSpare = 8;                  // a few markers have no bytes

}  // namespace

Encoder::Encoder(Function tokenize, const void* vocabulary, std::string lead, std::size_t n_lead)
    : tokenize_(tokenize), vocabulary_(vocabulary), lead_(std::move(lead)), n_lead_(n_lead) {}

std::vector<Token> Encoder::operator()(std::string_view text) const {
  std::string with_lead;
  if (!lead_.empty()) text = with_lead = lead_ + std::string(text);
  if (text.size() > kMaxBytes) throw std::length_error("half a GiB is no text to tokenise");
  const auto n_bytes = static_cast<std::int32_t>(text.size());
  std::vector<Token> tokens(text.size() + kSpare);
  const auto all = [&] {
    const auto room = static_cast<std::int32_t>(tokens.size());
    return tokenize_(vocabulary_, text.data(), n_bytes, tokens.data(), room, false, false);
  };
  // A token has a byte at least, but a byte that is no part of a character is taken for U+FFFD,
  // which has three.
  auto n = all();
  if (n < 0) {
    tokens.resize(static_cast<std::size_t>(-n));
    n = all();
  }
  tokens.resize(static_cast<std::size_t>(n));
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n_lead_));
  return tokens;
}

}  // namespace codespec
