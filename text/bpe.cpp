#include "text/bpe.h"

#include <algorithm>
#include <bit>

namespace sluice::text {

Bpe::RuleTable::RuleTable(const std::vector<BpeMerge>& merges) : slots_(std::bit_ceil(2 * merges.size() + 2)) {
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const BpeMerge& merge = merges[rank];
    slots_[slot_of(merge.left, merge.right)] = {merge.left, merge.right, {static_cast<uint32_t>(rank), merge.merged}};
  }
}

size_t Bpe::RuleTable::slot_of(int32_t left, int32_t right) const {
  const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  const size_t mask = slots_.size() - 1;
  size_t slot = (key * 0x9E3779B97F4A7C15u >> 32) & mask;  // Fibonacci hashing
  while (slots_[slot].rule.merged >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) slot = (slot + 1) & mask;
  return slot;
}

Bpe::Rule Bpe::RuleTable::find(int32_t left, int32_t right) const { return slots_[slot_of(left, right)].rule; }

Bpe::Bpe(BpeRules rules)
    : byte_ids_(rules.byte_ids), rules_(rules.merges), unknown_(rules.unknown), fuse_unknown_(rules.fuse_unknown) {
  keep_words_of_one_token(rules.words, rules.ignore_merges);
}

void Bpe::keep_words_of_one_token(const std::unordered_map<std::string, int32_t>& words, bool all) {
  Workspace workspace;
  std::vector<int64_t> ids;
  decltype(one_token_words_) kept;
  for (const auto& [word, id] : words) {
    ids.clear();
    encode(word, workspace, ids);
    const bool encodes_to_itself = ids.size() == 1 && ids[0] == id;
    if (!all && !encodes_to_itself) continue;
    kept.emplace(word, id);
    longest_one_token_word_ = std::max(longest_one_token_word_, word.size());
  }
  one_token_words_ = std::move(kept);
}

void Bpe::encode(std::string_view word, Workspace& workspace, std::vector<int64_t>& ids) const {
  if (word.size() <= longest_one_token_word_) {
    if (const auto known = one_token_words_.find(word); known != one_token_words_.end()) {
      ids.push_back(known->second);
      return;
    }
  }
  load_symbols(word, workspace);
  merge_symbols(workspace);
  for (const auto& symbol : workspace.symbols) {
    if (symbol.id >= 0) ids.push_back(symbol.id);
  }
}

void Bpe::load_symbols(std::string_view word, Workspace& workspace) const {
  auto& symbols = workspace.symbols;
  symbols.clear();
  bool after_unknown = false;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    const bool known = byte_ids_[byte] >= 0;
    if (!known && !unknown_) continue;
    if (known || !(after_unknown && fuse_unknown_)) {
      const auto position = static_cast<int32_t>(symbols.size());
      symbols.push_back({known ? byte_ids_[byte] : *unknown_, position - 1, position + 1});
    }
    after_unknown = !known;
  }
  if (!symbols.empty()) symbols.back().next = -1;
}

namespace {

constexpr auto kSmallestFirst = [](const auto& a, const auto& b) { return a.order > b.order; };

}  // namespace

void Bpe::offer_merge(Workspace& workspace, int32_t position) const {
  if (position < 0) return;
  const auto& left = workspace.symbols[position];
  if (left.next < 0) return;
  const Rule rule = rules_.find(left.id, workspace.symbols[left.next].id);
  if (rule.merged < 0) return;
  workspace.candidates.push_back({static_cast<uint64_t>(rule.rank) << 32 | static_cast<uint32_t>(position), rule.merged});
  std::push_heap(workspace.candidates.begin(), workspace.candidates.end(), kSmallestFirst);
}

void Bpe::merge_symbols(Workspace& workspace) const {
  auto& symbols = workspace.symbols;
  auto& candidates = workspace.candidates;
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
}

}  // namespace sluice::text
