#include "text/tokenizer/word_table.h"

#include <algorithm>

namespace sluice::text {

bool WordTable::find(std::string_view word, uint64_t hash, std::span<const int32_t>& ids) const {
  if (slots_.empty()) return false;
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.length == 0) return false;
    const bool may_be = slot.hash == static_cast<uint32_t>(hash >> 32) && slot.length == word.size();
    if (may_be && std::memcmp(letters_.data() + slot.letters, word.data(), word.size()) == 0) {
      ids = {ids_.data() + slot.ids, slot.count};
      return true;
    }
  }
}

void WordTable::insert(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
  if (2 * (size_ + 1) > slots_.size()) grow();
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  while (slots_[i].length != 0) i = (i + 1) & mask;
  slots_[i] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(word.size()), static_cast<uint32_t>(letters_.size()),
               static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(ids.size())};
  letters_ += word;
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++size_;
}

void WordTable::grow() {
  constexpr size_t kFewest = 64;
  std::vector<Slot> larger(std::max(kFewest, 2 * slots_.size()));
  const size_t mask = larger.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.length == 0) continue;
    size_t i = WordTable::hash(std::string_view(letters_).substr(slot.letters, slot.length)) & mask;
    while (larger[i].length != 0) i = (i + 1) & mask;
    larger[i] = slot;
  }
  slots_ = std::move(larger);
}

void WordTable::clear() {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  letters_.clear();
  ids_.clear();
  size_ = 0;
}

}  // namespace sluice::text
