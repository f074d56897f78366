// A model's own tokenizer, by llama.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokens.h"

namespace codespec {

// llama_tokenize with a vocabulary, which must outlive this. Thread-safe.
class Encoder {
 public:
  using Function = std::int32_t (*)(const void* vocabulary, const char* text, std::int32_t n_bytes,
                                    Token* tokens, std::int32_t n_tokens, bool with_ends,
                                    bool with_special);

  // lead: put before each text; its first n_lead tokens are dropped.
  Encoder(Function tokenize, const void* vocabulary, std::string lead, std::size_t n_lead);

  // Tokens of plain text, of any bytes: special tokens in it are read as text, nothing is added.
  // Throws std::length_error for half a GiB and more.
  std::vector<Token> operator()(std::string_view text) const;

 private:
  Function tokenize_;
  const void* vocabulary_;
  std::string lead_;
  std::size_t n_lead_;
};

}  // namespace codespec
