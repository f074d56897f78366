// The bytes of every token, searched by prefix.
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
  // The bytes of a token; empty for ids out of range.
  std::string_view piece(Token token) const;
  std::string text(Tokens tokens) const;

  // Ids, ascending, of tokens that `wanted` (not empty) is a prefix of, or that are a prefix of it.
  // A short prefix has tens of thousands, so some answers are cached. Valid until the next call.
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
