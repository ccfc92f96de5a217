#include "engine/schedule/stages/packer.h"

#include <utility>

#include "base/error.h"
#include "engine/contract/columns/contract_breach.h"

namespace sluice::engine {

std::vector<Packer::Batch> Packer::add(Group group) {
  if (group.layout.groups() != 1)
    throw_contract_breach("a finished group has a layout of " + std::to_string(group.layout.groups()) + " groups, not of one");
  early_.emplace(group.index, std::move(group));
  return take_in_order();
}

std::vector<Packer::Batch> Packer::skip(int64_t index) {
  const bool goes_on = !skipped_.empty() && skipped_.rbegin()->second == index;
  if (goes_on)
    ++skipped_.rbegin()->second;
  else
    skipped_.emplace(index, index + 1);
  return take_in_order();
}

std::vector<Packer::Batch> Packer::take_in_order() {
  std::vector<Batch> ready;
  while (true) {
    if (!skipped_.empty() && skipped_.begin()->first == next_group_) {
      next_group_ = skipped_.begin()->second;
      skipped_.erase(skipped_.begin());
      continue;
    }
    if (early_.empty() || early_.begin()->first != next_group_) break;
    ++next_group_;
    Group next = std::move(early_.extract(early_.begin()).mapped());
    if (!open_.empty() && open_.front().slot != next.slot) ready.push_back(pack());
    open_tokens_ += static_cast<int64_t>(next.layout.tokens());
    open_.push_back(std::move(next));
    if (open_tokens_ + worst_group_tokens_ > micro_batch_tokens_) ready.push_back(pack());
  }
  return ready;
}

std::vector<Packer::Batch> Packer::flush() {
  SLUICE_CHECK(early_.empty() && skipped_.empty(), "a round of groups ends with a group missing");
  std::vector<Batch> rest;
  if (!open_.empty()) rest.push_back(pack());
  return rest;
}

std::vector<Packer::Batch> Packer::finish_iteration() {
  std::vector<Batch> rest = flush();
  next_group_ = next_id_ = 0;
  return rest;
}

Packer::Batch Packer::pack() {
  Batch batch{.id = next_id_++, .slot = open_.front().slot};
  for (const Group& group : open_) {
    batch.layout.append(group.layout);
    batch.group_indices.push_back(group.index);
  }
  for (size_t c = 0; c < open_.front().columns.size(); ++c) {
    std::vector<ColumnData> parts;
    for (const Group& group : open_) {
      if (group.columns.size() != open_.front().columns.size() || group.columns[c].spec != open_.front().columns[c].spec) {
        throw_contract_breach("groups " + std::to_string(open_.front().index) + " and " + std::to_string(group.index) +
                              " have different columns");
      }
      parts.push_back(group.columns[c].data);
    }
    batch.columns.push_back({open_.front().columns[c].spec, ColumnData::concatenated(parts)});
  }
  open_.clear();
  open_tokens_ = 0;
  return batch;
}

}  // namespace sluice::engine
