#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/contract/columns/micro_batch.h"

namespace sluice::engine {

/// Packs the finished groups of an iteration into micro-batches: whole groups in order of their index, back to back. Groups may
/// arrive in any order. Where a micro-batch ends depends only on the groups themselves, never on timing: it is cut as soon as
/// another group of the worst size might not fit, and where another slot of the run begins. That also means it never waits for a
/// group that it then could not take. One thread.
class Packer {
 public:
  struct Batch {
    int64_t id = 0;  // counts from 0 in each iteration
    int slot = 0;    // of all its groups
    Layout layout;
    std::vector<int64_t> group_indices;
    std::vector<Group::NamedColumn> columns;
  };

  Packer(int64_t micro_batch_tokens, int64_t worst_group_tokens)
      : micro_batch_tokens_(micro_batch_tokens), worst_group_tokens_(worst_group_tokens) {}

  /// The micro-batches that are complete now. All groups of one iteration have the same columns.
  std::vector<Batch> add(Group group);

  /// There is no group of this index. The micro-batches that are complete now.
  std::vector<Batch> skip(int64_t index);

  /// No group will come for now: what is left, if anything. Every group added must have been packed or be part of it.
  std::vector<Batch> flush();

  /// Every group added has been packed.
  bool is_empty() const { return open_.empty() && early_.empty(); }

  /// As flush(); the next group is group 0 of another iteration.
  std::vector<Batch> finish_iteration();

 private:
  std::vector<Batch> take_in_order();
  Batch pack();

  const int64_t micro_batch_tokens_;
  const int64_t worst_group_tokens_;
  std::map<int64_t, Group> early_;      // arrived before a group with a lower index
  std::map<int64_t, int64_t> skipped_;  // likewise: first index of a stretch, and the one after it; most ranks skip most groups
  std::vector<Group> open_;             // the micro-batch that is being filled
  int64_t open_tokens_ = 0;
  int64_t next_group_ = 0;
  int64_t next_id_ = 0;
};

}  // namespace sluice::engine
