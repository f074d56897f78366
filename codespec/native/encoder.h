// A model's own tokenizer, as llama.cpp has it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokens.h"

namespace codespec {

// llama_tokenize and what it is called with, which has to outlive this. Thread-safe.
class Encoder {
 public:
  using Function = std::int32_t (*)(const void* vocabulary, const char* text, std::int32_t n_bytes,
                                    Token* tokens, std::int32_t n_tokens, bool with_ends,
                                    bool with_special);

  // lead: put before each text, and gone from the tokens with the first n_lead of them.
  Encoder(Function tokenize, const void* vocabulary, std::string lead, std::size_t n_lead);

  // Of plain text, of any bytes: special tokens in it are read as text, nothing is added. Throws
  // std::length_error for half a GiB and more.
  std::vector<Token> operator()(std::string_view text) const;

 private:
  Function tokenize_;
  const void* vocabulary_;
  std::string lead_;
  std::size_t n_lead_;
};

}  // namespace codespec
