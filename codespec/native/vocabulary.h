// The bytes of every token.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tokens.h"

namespace codespec {

// One thread only.
class Vocabulary {
 public:
  // By id; those without bytes stand for no text.
  explicit Vocabulary(const std::vector<std::string_view>& pieces);

  std::size_t size() const { return starts_.size() - 1; }
  // Nothing for what is no id.
  std::string_view piece(Token token) const;
  std::string text(Tokens tokens) const;

  // Ids, ascending, of tokens that start with `wanted` (not empty) or that it starts with: a short
  // beginning has tens of thousands, so some answers are kept. Valid until the next call.
  Tokens compatible(std::string_view wanted);
  // Ids of tokens with `part` in their bytes. Takes some milliseconds.
  std::vector<Token> containing(std::string_view part) const;

 private:
  std::string bytes_;                  // of all pieces, one after the other
  std::vector<std::uint32_t> starts_;  // by id, and the end of the last
  std::vector<Token> sorted_;          // by their bytes, those without any left out
  std::map<std::string, std::vector<Token>, std::less<>> known_;
};

}  // namespace codespec
