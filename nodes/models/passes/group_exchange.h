#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "engine/contract/columns/column.h"
#include "engine/contract/world/pass_group.h"
#include "models/layers/segment.h"

namespace sluice::nodes {

/// What ranks that compute a pass together give each other, as columns of a pass group, which outlives this. Threads, waiting and
/// failure: as engine/contract/world/pass_group.h.
class GroupExchange final : public models::SegmentExchange {
 public:
  explicit GroupExchange(engine::PassGroup& group) : group_(group) {}

  void exchange(std::span<const Tensors> to, std::span<const Tensors> from) override;

 private:
  engine::PassGroup& group_;
};

/// A copy of a tensor on the host, as bytes, and back.
engine::ColumnData column_of(const at::Tensor& tensor);
void copy_column(const engine::ColumnData& column, const at::Tensor& tensor);

}  // namespace sluice::nodes
