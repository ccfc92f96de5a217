#include "nodes/models/passes/group_exchange.h"

#include <ATen/ops/from_blob.h>

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::nodes {
namespace {

constexpr std::align_val_t kAligned{64};

int64_t bytes_of(const at::Tensor& tensor) { return tensor.numel() * static_cast<int64_t>(tensor.element_size()); }

// Not a tensor's: another thread lets go of it.
std::shared_ptr<void> memory_of(int64_t bytes) {
  return {::operator new(static_cast<size_t>(bytes), kAligned), [](void* memory) { ::operator delete(memory, kAligned); }};
}

}  // namespace

engine::ColumnData column_of(const at::Tensor& tensor) {
  const int64_t bytes = bytes_of(tensor);
  std::shared_ptr<void> memory = memory_of(bytes);
  at::from_blob(memory.get(), tensor.sizes(), at::TensorOptions(tensor.scalar_type())).copy_(tensor);
  return {engine::DType::kUint8, static_cast<size_t>(bytes), std::move(memory)};
}

void copy_column(const engine::ColumnData& column, const at::Tensor& tensor) {
  SLUICE_CHECK(column.bytes() == bytes_of(tensor), "a rank of a pass gives something else than is asked of it");
  tensor.copy_(at::from_blob(column.entries<uint8_t>().data(), tensor.sizes(), at::TensorOptions(tensor.scalar_type())));
}

void GroupExchange::exchange(std::span<const Tensors> to, std::span<const Tensors> from) {
  std::vector<engine::PassGroup::Columns> given(to.size());
  std::vector<int64_t> most(from.size());
  for (size_t place = 0; place < to.size(); ++place) {
    if (static_cast<int>(place) == group_.place()) continue;
    for (const at::Tensor& tensor : to[place]) given[place].push_back(column_of(tensor));
    for (const at::Tensor& tensor : from[place]) most[place] += bytes_of(tensor);
  }
  const std::vector<engine::PassGroup::Columns> come = group_.exchange(std::move(given), most);
  for (size_t place = 0; place < from.size(); ++place) {
    if (static_cast<int>(place) == group_.place() || most[place] == 0) continue;
    SLUICE_CHECK(come[place].size() == from[place].size(), "the ranks of a pass are not at the same place");
    for (size_t i = 0; i < from[place].size(); ++i) copy_column(come[place][i], from[place][i]);
  }
}

}  // namespace sluice::nodes
