#include "text/tokenizer/bpe.h"

#include <algorithm>
#include <span>

namespace sluice::text {
namespace {

constexpr std::string_view kBlank = "\u2581";  // SentencePiece's
constexpr size_t kShortWord = 32;              // symbols; below, looking at all pairs is faster than a heap

// Where the part of `text` that begins at `begin` ends: before the next blank that follows something else.
size_t part_end(std::string_view text, size_t begin) {
  size_t end = begin;
  while (text.substr(end, kBlank.size()) == kBlank) end += kBlank.size();
  return std::min(text.find(kBlank, end), text.size());
}

}  // namespace

Bpe::Bpe(BpeRules rules)
    : symbols_(rules.symbols, rules.words),
      rules_(rules.merges),
      ignore_merges_(rules.ignore_merges),
      cuts_before_blanks_(rules.cuts_before_blanks && !rules.ignore_merges && symbols_.ignores_position() &&
                          symbols_.has(U'\u2581')) {
  keep_words_of_one_token(rules.words);
}

void Bpe::keep_words_of_one_token(const std::unordered_map<std::string, int32_t>& words) {
  Workspace workspace;
  for (const auto& [word, id] : words) {
    if (!ignore_merges_) {
      merge(word, workspace);
      if (workspace.parts.size() != 1 || workspace.parts[0] != id) continue;
    }
    one_token_words_.insert(word, WordTable::hash(word), std::span(&id, 1));
    longest_one_token_word_ = std::max(longest_one_token_word_, word.size());
  }
}

void Bpe::encode(std::string_view word, Workspace& workspace, std::vector<int64_t>& ids) const {
  workspace.known.belong_to(identity_);
  if (!cuts_before_blanks_) return encode_part(word, workspace, ids);
  for (size_t begin = 0; begin < word.size();) {
    const size_t end = part_end(word, begin);
    encode_part(word.substr(begin, end - begin), workspace, ids);
    begin = end;
  }
}

void Bpe::encode_part(std::string_view word, Workspace& workspace, std::vector<int64_t>& ids) const {
  if (word.empty()) return;
  const bool may_be_known = word.size() <= std::max(longest_one_token_word_, KnownWords::kLongestWord);
  const uint64_t hash = may_be_known ? WordTable::hash(word) : 0;
  std::span<const int32_t> known;
  if (may_be_known && (one_token_words_.find(word, hash, known) || workspace.known.find(word, hash, known))) {
    ids.insert(ids.end(), known.begin(), known.end());
    return;
  }
  merge(word, workspace);
  ids.insert(ids.end(), workspace.parts.begin(), workspace.parts.end());
  if (word.size() > KnownWords::kLongestWord) return;
  workspace.known.remember(word, hash, workspace.parts);
}

void Bpe::merge(std::string_view word, Workspace& workspace) const {
  symbols_.load(word, workspace.parts);
  // With prefixes a pair may make the token that another pair at its place was offered for; only the heap treats that as the
  // reference does.
  const bool is_short = workspace.parts.size() <= kShortWord && symbols_.ignores_position();
  is_short ? merge_short(workspace) : merge_long(workspace);
}

// rules[i]: of the pair i, i + 1.
void Bpe::merge_short(Workspace& workspace) const {
  auto& parts = workspace.parts;
  auto& rules = workspace.rules;
  rules.clear();
  for (size_t i = 0; i + 1 < parts.size(); ++i) rules.push_back(rules_.find(parts[i], parts[i + 1]));
  while (!rules.empty()) {
    const auto best = std::min_element(rules.begin(), rules.end(), [](auto a, auto b) { return a.rank < b.rank; });
    if (best->merged < 0) return;
    const auto i = static_cast<size_t>(best - rules.begin());
    parts[i] = best->merged;
    parts.erase(parts.begin() + static_cast<ptrdiff_t>(i) + 1);
    rules.erase(best);
    if (i > 0) rules[i - 1] = rules_.find(parts[i - 1], parts[i]);
    if (i < rules.size()) rules[i] = rules_.find(parts[i], parts[i + 1]);
  }
}

namespace {

constexpr auto kSmallestFirst = [](const auto& a, const auto& b) { return a.order > b.order; };

}  // namespace

void Bpe::offer_merge(Workspace& workspace, int32_t position) const {
  if (position < 0) return;
  const auto& left = workspace.symbols[position];
  if (left.next < 0) return;
  const auto rule = rules_.find(left.id, workspace.symbols[left.next].id);
  if (rule.merged < 0) return;
  workspace.candidates.push_back({static_cast<uint64_t>(rule.rank) << 32 | static_cast<uint32_t>(position), rule.merged});
  std::push_heap(workspace.candidates.begin(), workspace.candidates.end(), kSmallestFirst);
}

void Bpe::merge_long(Workspace& workspace) const {
  auto& symbols = workspace.symbols;
  auto& candidates = workspace.candidates;
  symbols.clear();
  for (const int32_t id : workspace.parts) {
    const auto position = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, position - 1, position + 1});
  }
  if (!symbols.empty()) symbols.back().next = -1;
  candidates.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i) offer_merge(workspace, static_cast<int32_t>(i));

  while (!candidates.empty()) {
    std::pop_heap(candidates.begin(), candidates.end(), kSmallestFirst);
    const auto best = candidates.back();
    candidates.pop_back();

    auto& left = symbols[best.position()];
    if (left.id < 0 || left.next < 0) continue;
    auto& right = symbols[left.next];
    // The pair may have changed since it was offered. It still counts when it makes the same token, as in the reference.
    if (rules_.find(left.id, right.id).merged != best.merged) continue;

    left.id = best.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbols[left.next].previous = best.position();
    offer_merge(workspace, left.previous);
    offer_merge(workspace, best.position());
  }

  workspace.parts.clear();
  for (const auto& symbol : symbols) {
    if (symbol.id >= 0) workspace.parts.push_back(symbol.id);
  }
}

}  // namespace sluice::text
