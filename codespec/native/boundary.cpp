#include "boundary.h"

#include <algorithm>
#include <utility>

namespace codespec {
namespace {

constexpr std::size_t kMaxBack = 16;  // most tokens to go back: longer runs are no words
// After so many emitted tokens at most, more do not change how the text around the cursor is split.
constexpr std::size_t kSettled = 4;
constexpr int kMaxAsks = 4;
constexpr int kExtra = 4;  // beside those wanted: the text since the agreed place takes some

bool is_letter(unsigned char c) { return c >= 0x80 || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); }
bool is_digit(unsigned char c) { return c >= '0' && c <= '9'; }
bool is_word(unsigned char c) { return is_letter(c) || is_digit(c); }
bool is_blank(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool ends_line(unsigned char c) { return c == '\r' || c == '\n'; }

// Bytes at the end of a text that more text may still change the tokens of: a word with the
// character before it, a number, punctuation, white space. Families of tokenizers differ in more
// than this tells; where it is wrong, a lookup misses.
std::size_t open_end(std::string_view text) {
  const auto before = [&](std::size_t end, auto is_part) {  // the run that ends there
    while (end > 0 && is_part(static_cast<unsigned char>(text[end - 1]))) --end;
    return end;
  };
  const auto with = [&](std::size_t begin, auto may_lead) {  // and one character before it
    return begin > 0 && may_lead(static_cast<unsigned char>(text[begin - 1])) ? begin - 1 : begin;
  };
  const auto is_space = [](unsigned char c) { return c == ' '; };
  const std::size_t n = text.size();
  std::size_t first = before(n, is_blank);
  if (const auto word = before(n, is_letter); word < n) {
    first = with(word, [](unsigned char c) { return !is_word(c) && !ends_line(c); });
  }
  if (const auto number = before(n, is_digit); number < n) {
    first = n - number > 3 ? n - 3 : with(number, is_space);
  }
  const auto line = before(n, ends_line);
  const auto marks = before(line, [](unsigned char c) { return !is_word(c) && !is_blank(c); });
  if (marks < line) first = std::min(first, with(marks, is_space));
  return n - first;
}

// True if tokenizers split text between these two bytes, in any context.
bool parts(unsigned char last, unsigned char first) {
  if (is_word(last)) return !is_word(first) && first != '\'';  // 's, 't
  return first == ' ' && last != ' ' && last != '\t' && !ends_line(last);
}

// True if a text begins inside a UTF-8 character.
bool continues(std::string_view text) {
  return !text.empty() && (static_cast<unsigned char>(text[0]) & 0xc0) == 0x80;
}

bool is_text(std::string_view bytes) {
  const auto n = static_cast<Py_ssize_t>(bytes.size());
  const nb::object text = nb::steal(PyUnicode_DecodeUTF8(bytes.data(), n, nullptr));
  if (!text.is_valid()) PyErr_Clear();
  return text.is_valid();
}

}  // namespace

Boundary::Boundary(Tokens left, std::string healed, Vocabulary& vocabulary, Encode encode)
    : vocabulary_(vocabulary),
      encode_(std::move(encode)),
      healed_(std::move(healed)),
      n_base_(left.size() - n_open(left)),
      kept_(left.begin() + static_cast<std::ptrdiff_t>(n_base_), left.end()),
      open_(vocabulary_.text(kept_)) {}

// Number of last tokens whose text may be tokenised in another way when more text follows.
std::size_t Boundary::n_open(Tokens left) const {
  const Tokens last = left.last(std::min(left.size(), kMaxBack));
  const std::string text = vocabulary_.text(last) + healed_;
  const std::size_t n_text = text.size(), open = open_end(text);
  const std::size_t n_open = open > healed_.size() ? open - healed_.size() : 0;
  std::size_t n_back = 0, n_bytes = 0;
  for (; n_back < last.size(); ++n_back) {
    // Nor must a character be cut in two.
    const auto after = std::string_view(text).substr(n_text - healed_.size() - n_bytes);
    if (n_bytes >= n_open && !continues(after)) return n_back;
    n_bytes += vocabulary_.piece(last[last.size() - 1 - n_back]).size();
  }
  return n_back < kMaxBack ? n_back : 0;
}

Query Boundary::query(Tokens emitted) {
  if (open_.empty() && healed_.empty()) return {{emitted.begin(), emitted.end()}, {}, 0};
  const bool is_known = settled_ && emitted.size() >= settled_->by.size() &&
                        std::ranges::equal(emitted.first(settled_->by.size()), settled_->by);
  const std::size_t n = is_known ? settled_->n : n_unsettled(emitted);
  Query query = is_known ? settled_->begin : begin(emitted.first(n));
  if (!is_known && (n < emitted.size() || n == kSettled)) {
    const Tokens by = emitted.first(std::min(n + 1, kSettled));
    settled_ = {{by.begin(), by.end()}, n, query};
  }
  if (query.wanted.empty()) {
    const Tokens more = emitted.subspan(n);
    query.tail.insert(query.tail.end(), more.begin(), more.end());
  }
  return query;
}

// Number of emitted tokens after which more do not change how the text around the cursor is
// tokenised: up to where a word surely ends.
std::size_t Boundary::n_unsettled(Tokens emitted) const {
  const std::size_t n = std::min(emitted.size(), kSettled);
  std::size_t n_bytes = 0;
  std::string_view last;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view piece = vocabulary_.piece(emitted[i]);
    const bool is_healed = n_bytes >= healed_.size();
    if (is_healed && !last.empty() && !piece.empty() &&
        parts(static_cast<unsigned char>(last.back()), static_cast<unsigned char>(piece[0]))) {
      return i;
    }
    n_bytes += piece.size();
    last = piece;
  }
  return n;
}

// The lookup after the first tokens.
Query Boundary::begin(Tokens emitted) const {
  const std::string head = vocabulary_.text(emitted);
  if (emitted.empty() || head.size() < healed_.size()) {
    return {{}, open_ + healed_, open_.size() + head.size()};
  }
  // The text around the cursor in a file's tokens, not in those of prompt and output.
  return {encode_(open_ + head), {}, 0};
}

std::size_t Boundary::ask(Tokens emitted, Tokens path, int n_max, Sources& sources) {
  const Query query = this->query(emitted);
  if (query.wanted.empty()) return sources.ask(query.tail, path, n_max);
  auto found = find(query, n_max, sources);
  for (auto& [i, said] : found) sources.offer(i, said.position, std::move(said.steps), path);
  return found.size();
}

std::map<std::size_t, Boundary::Continuation> Boundary::find(const Query& query, int n_max,
                                                             Sources& sources) {
  std::map<std::size_t, Continuation> found;
  find({}, query.wanted, query.n_given, n_max, sources, found);
  if (open_.empty() || query.n_given > open_.size()) return found;
  // Tokens may agree further than the rule guarantees.
  if (!healed_.empty()) {
    find(kept_, healed_, 0, n_max, sources, found);
    return found;
  }
  for (const auto& [i, proposed] : sources.draft_all(kept_, n_max, std::nullopt)) {
    found.try_emplace(i, Continuation{steps_of(proposed), proposed.position});
  }
  return found;
}

// A second lookup for the sources without a match.
void Boundary::find(Tokens tail, std::string_view missing, std::size_t n_given, int n_max,
                    Sources& sources, std::map<std::size_t, Continuation>& found) {
  auto all = sources.draft_all(tail, n_max + kExtra, vocabulary_.compatible(missing));
  for (auto& [i, proposed] : all) {
    if (found.contains(i)) continue;
    const std::int64_t position = proposed.position;
    auto steps = spelling(i, std::move(proposed), tail, missing, n_max, sources);
    if (!steps) continue;
    auto rest = beyond(*std::move(steps), n_given, n_max);
    if (!rest.empty()) found[i] = {std::move(rest), position};
  }
}

// The i-th source's proposal, if its tokens from `proposed` on begin with the missing bytes.
std::optional<std::vector<Step>> Boundary::spelling(std::size_t i, Proposal proposed, Tokens tail,
                                                    std::string_view missing, int n_max,
                                                    Sources& sources) {
  std::vector<Step> steps;
  std::vector<Token> said(tail.begin(), tail.end());
  for (int k = 0; k < kMaxAsks; ++k) {
    const std::size_t n = spelled(proposed.tokens(), missing);
    const auto more = steps_of(proposed);
    steps.insert(steps.end(), more.begin(), more.begin() + static_cast<std::ptrdiff_t>(n));
    if (missing.empty()) return steps;
    if (n == 0) break;
    const Tokens tokens = proposed.tokens().first(n);
    said.insert(said.end(), tokens.begin(), tokens.end());
    proposed = sources.draft(i, said, n_max + kExtra, vocabulary_.compatible(missing));
  }
  return std::nullopt;
}

// Number of tokens that match the missing bytes, which are taken off `missing`.
std::size_t Boundary::spelled(Tokens tokens, std::string_view& missing) const {
  for (std::size_t n = 0; n < tokens.size(); ++n) {
    const std::string_view piece = vocabulary_.piece(tokens[n]);
    if (piece.starts_with(missing)) {
      missing = {};
      return tokens.size();
    }
    if (piece.empty() || !missing.starts_with(piece)) return n;
    missing.remove_prefix(piece.size());
  }
  return tokens.size();
}

// The drafted text after its first n_given bytes.
std::vector<Step> Boundary::beyond(std::vector<Step> steps, std::size_t n_given, int n_max) const {
  const auto piece = [&](std::size_t i) { return vocabulary_.piece(steps[i].token); };
  std::size_t first = 0, n_bytes = 0;
  while (first < steps.size() && n_bytes + piece(first).size() <= n_given) {
    n_bytes += piece(first).size();
    ++first;
  }
  std::vector<Step> rest;
  if (n_bytes < n_given && first < steps.size()) {
    // Half a token: its other half, in tokens of its own with the votes of the whole.
    const std::string_view half = piece(first).substr(n_given - n_bytes);
    if (!is_text(half)) return {};
    Step step = steps[first++];
    step.alt_token = kBreak;
    step.alt_count = 0;
    for (const Token token : encode_(half)) {
      step.token = token;
      rest.push_back(step);
    }
    if (rest.empty()) return {};
  }
  rest.insert(rest.end(), steps.begin() + static_cast<std::ptrdiff_t>(first), steps.end());
  if (rest.size() > static_cast<std::size_t>(n_max)) rest.resize(static_cast<std::size_t>(n_max));
  return rest;
}

}  // namespace codespec
