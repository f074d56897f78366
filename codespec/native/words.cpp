#include "words.h"

#include <cstring>
#include <mutex>
#include <random>
#include <stdexcept>
#include <unordered_map>

namespace codespec {
namespace {

// Classes of bytes. Those beyond ASCII are no business of this table and count as `kOther`.
enum Class : std::uint8_t { kOther, kLetter, kDigit, kBlank, kNewline };

constexpr std::array<Class, 256> kClasses = [] {
  std::array<Class, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = classes[c - 'a' + 'A'] = kLetter;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kDigit;
  for (const char c : {' ', '\t', '\v', '\f'}) classes[c] = kBlank;
  classes['\r'] = classes['\n'] = kNewline;
  return classes;
}();

class Reader {
 public:
  Reader(std::string_view text, Splitting splitting) : text_(text), splitting_(splitting) {}

  std::size_t end(std::size_t at) const {
    if (const std::size_t n = clitic(at)) return at + n;
    return splitting_ == Splitting::kGpt2 ? end_gpt2(at) : end_qwen2(at);
  }

 private:
  // [^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  // Llama 3: [0-9]{1,3}.
  std::size_t end_qwen2(std::size_t at) const {
    const Class first = is(at);
    if (first == kLetter) return run(at, kLetter);
    if (first == kDigit) {
      const std::size_t most = at + (splitting_ == Splitting::kQwen2 ? 1 : 3);
      std::size_t end = at + 1;  // not the whole run for each of its words: it may be half a file
      while (end < most && is(end) == kDigit) ++end;
      return end;
    }
    if (first != kNewline && is(at + 1) == kLetter) return run(at + 1, kLetter);
    const std::size_t start = at + (text_[at] == ' ');
    if (is(start) == kOther) return run(run(start, kOther), kNewline);
    const std::size_t end = spaces(at);
    for (std::size_t i = end; i > at; --i) {
      if (is(i - 1) == kNewline) return i;
    }
    return before_last_space(at, end);
  }

  //  ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+
  std::size_t end_gpt2(std::size_t at) const {
    const std::size_t start = at + (text_[at] == ' ');
    const Class first = is(start);
    if (first == kLetter || first == kDigit || first == kOther) return run(start, first);
    return before_last_space(at, spaces(at));
  }

  // Bytes of 's 't 're 've 'm 'll 'd, which end a word wherever they stand, or 0. Only GPT-2 tells
  // capitals apart.
  std::size_t clitic(std::size_t at) const {
    if (text_[at] != '\'' || at + 1 >= text_.size()) return 0;
    const auto lower = [&](std::size_t i) -> char {
      if (i >= text_.size()) return '\0';
      const char c = text_[i];
      return splitting_ != Splitting::kGpt2 && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
    };
    switch (const char second = lower(at + 2); lower(at + 1)) {
      case 's':
      case 't':
      case 'm':
      case 'd':
        return 2;
      case 'r':
      case 'v':
        return second == 'e' ? 3 : 0;
      case 'l':
        return second == 'l' ? 3 : 0;
      default:
        return 0;
    }
  }

  // White space ends a word before its last character, which belongs to what comes next.
  std::size_t before_last_space(std::size_t at, std::size_t end) const {
    return end < text_.size() && end - at > 1 ? end - 1 : end;
  }

  Class is(std::size_t i) const {  // beyond the end: of no class that words begin with
    return i < text_.size() ? kClasses[static_cast<unsigned char>(text_[i])] : kBlank;
  }

  std::size_t run(std::size_t i, Class of) const {
    while (i < text_.size() && is(i) == of) ++i;
    return i;
  }

  std::size_t spaces(std::size_t i) const {
    while (i < text_.size() && is(i) >= kBlank) ++i;
    return i;
  }

  std::string_view text_;
  Splitting splitting_;
};

bool is_ascii(std::string_view word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return (c & 0x80) == 0; });
}

std::string_view cut(std::string_view text, const WordTable::Span& span) {
  return text.substr(static_cast<std::size_t>(span.begin),
                     static_cast<std::size_t>(span.end - span.begin));
}

}  // namespace

std::size_t word_end(std::string_view text, std::size_t at, Splitting splitting) {
  return Reader(text, splitting).end(at);
}

WordTable::WordTable(Splitting splitting, std::size_t max_words)
    : splitting_(splitting),
      max_words_(max_words),
      seed_(std::uint64_t{std::random_device{}()} << 32 | std::random_device{}()),
      slots_(1 << 10, kNone) {}

WordTable::Encoded WordTable::encode(std::string_view text, std::span<const Span> opaque) const {
  Encoded found;
  found.tokens.reserve(text.size() / 3);
  std::unordered_map<std::string_view, Token> asked;
  const std::shared_lock lock(mutex_);
  const auto encode_words = [&](std::size_t at, std::size_t end) {
    const std::string_view part = text.substr(0, end);
    const Reader reader(part, splitting_);
    while (at < end) {
      const std::size_t next = reader.end(at);
      const std::string_view word = part.substr(at, next - at);
      if (const Entry* entry = find(word, hash(word)); entry != nullptr) {
        append(*entry, found.tokens);
      } else {
        const auto number = static_cast<Token>(found.unknown.size());
        const auto [place, is_new] = asked.try_emplace(word, number);
        if (is_new) {
          found.unknown.push_back({static_cast<std::int64_t>(at), static_cast<std::int64_t>(next)});
        }
        found.tokens.push_back(-1 - place->second);
      }
      at = next;
    }
  };
  std::size_t at = 0;
  for (const Span& span : opaque) {
    encode_words(at, static_cast<std::size_t>(span.begin));
    found.tokens.push_back(-1 - static_cast<Token>(found.unknown.size()));
    found.unknown.push_back(span);
    at = static_cast<std::size_t>(span.end);
  }
  encode_words(at, text.size());
  return found;
}

void WordTable::learn(std::string_view text, std::span<const Span> words, Tokens tokens,
                      std::span<const std::int64_t> lengths) {
  const std::lock_guard lock(mutex_);
  std::size_t at = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = cut(text, words[i]);
    const Tokens of_it = tokens.subspan(at, static_cast<std::size_t>(lengths[i]));
    at += of_it.size();
    const std::uint32_t h = hash(word);
    if (word.size() > kMaxWordBytes || of_it.size() > UINT16_MAX || !is_ascii(word)) continue;
    if (entries_.size() >= max_words_ || find(word, h) != nullptr) continue;
    Entry entry{h, static_cast<std::uint32_t>(words_.size()), 0,
                static_cast<std::uint16_t>(word.size()), static_cast<std::uint16_t>(of_it.size())};
    if (of_it.size() == 1) {
      entry.value = static_cast<std::uint32_t>(of_it[0]);
    } else {
      entry.value = static_cast<std::uint32_t>(tokens_.size());
      tokens_.insert(tokens_.end(), of_it.begin(), of_it.end());
    }
    words_.insert(words_.end(), word.begin(), word.end());
    entries_.push_back(entry);
    if (2 * entries_.size() > slots_.size()) {
      slots_.assign(2 * slots_.size(), kNone);
      for (std::uint32_t e = 0; e < entries_.size(); ++e) insert(e);
    } else {
      insert(static_cast<std::uint32_t>(entries_.size() - 1));
    }
  }
}

std::size_t WordTable::size() const {
  const std::shared_lock lock(mutex_);
  return entries_.size();
}

// Eight bytes at a time, multiplied and folded.
std::uint32_t WordTable::hash(std::string_view word) const {
  std::uint64_t h = seed_ ^ word.size();
  for (std::size_t i = 0; i < word.size(); i += 8) {
    std::uint64_t chunk = 0;
    std::memcpy(&chunk, word.data() + i, std::min<std::size_t>(8, word.size() - i));
    h = (h ^ chunk) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return static_cast<std::uint32_t>(h);
}

const WordTable::Entry* WordTable::find(std::string_view word, std::uint32_t h) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = h & mask; slots_[i] != kNone; i = (i + 1) & mask) {
    const Entry& entry = entries_[slots_[i]];
    if (entry.hash == h && entry.n_bytes == word.size() &&
        std::memcmp(words_.data() + entry.word, word.data(), word.size()) == 0) {
      return &entry;
    }
  }
  return nullptr;
}

void WordTable::insert(std::uint32_t index) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = entries_[index].hash & mask;
  while (slots_[i] != kNone) i = (i + 1) & mask;
  slots_[i] = index;
}

void WordTable::append(const Entry& entry, std::vector<Token>& out) const {
  if (entry.n_tokens == 1) {
    out.push_back(static_cast<Token>(entry.value));
  } else {
    const auto first = tokens_.begin() + entry.value;
    out.insert(out.end(), first, first + entry.n_tokens);
  }
}

}  // namespace codespec
