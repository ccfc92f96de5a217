#include "nodes/models/weights/wire_layout.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <set>

#include "models/layers/weight_names.h"

namespace sluice::nodes {
namespace {

constexpr size_t kAlignedTensor = 64;                                                  // bytes: a cache line
constexpr size_t kMostOfAnOwner = size_t{4} << 20, kLeastOfAnOwner = size_t{1} << 20;  // bytes of a bucket
constexpr size_t kLeastBuckets = 8;  // so that a small version, too, is copied on while its owners still write it

size_t rounded_up(size_t bytes) { return (bytes + kAlignedTensor - 1) / kAlignedTensor * kAlignedTensor; }

std::set<std::string> operand_names(const models::ModelConfig& config, models::Head head) {
  models::Weights weights;
  std::set<std::string> names;
  for (const models::ExpectedWeight& expected : models::expected_weights(config, head, weights))
    if (models::is_operand(expected, weights)) names.insert(expected.name);
  return names;
}

}  // namespace

WireLayout::WireLayout(const models::ModelConfig& config, models::Head head, models::Precision precision,
                       const std::vector<std::pair<std::string, at::Tensor>>& trained) {
  const std::set<std::string> operands =
      precision == models::Precision::kBfloat16 ? operand_names(config, head) : std::set<std::string>();
  size_t begin = 0;
  for (const auto& [name, tensor] : trained) {
    const at::ScalarType dtype = operands.contains(name) ? at::kBFloat16 : at::kFloat;
    const size_t end = begin + static_cast<size_t>(tensor.numel()) * c10::elementSize(dtype);
    tensors.push_back({.name = name, .shape = tensor.sizes().vec(), .dtype = dtype, .range = {begin, end}});
    begin = rounded_up(end);
  }
}

std::vector<std::pair<std::string, at::Tensor>> WireLayout::views(std::byte* begin) const {
  std::vector<std::pair<std::string, at::Tensor>> views;
  for (const WireTensor& tensor : tensors)
    views.emplace_back(tensor.name, at::from_blob(begin + tensor.range.begin, tensor.shape, at::TensorOptions(tensor.dtype)));
  return views;
}

PublicationRanks publication_ranks(const engine::ModelUsage& usage) {
  return {.own = usage.world.rank, .owners = usage.world.owners(), .receivers = usage.receivers};
}

engine::PublicationLayout publication_layout(const std::string& model, const WireLayout& layout, const PublicationRanks& ranks,
                                             int64_t first_version) {
  engine::PublicationLayout published{.model = model, .receivers = ranks.receivers, .first_version = first_version};
  const auto owners = static_cast<size_t>(ranks.owners);
  const size_t of_an_owner =  // whole cache lines, so that no number is cut
      rounded_up(std::clamp(layout.bytes() / (owners * kLeastBuckets), kLeastOfAnOwner, kMostOfAnOwner));
  for (size_t begin = 0; begin < layout.bytes();) {
    const size_t end = std::min(layout.bytes(), begin + owners * of_an_owner);
    const size_t share = rounded_up((end - begin + owners - 1) / owners);
    auto& bucket = published.buckets.emplace_back();
    for (int owner = 0; begin < end; ++owner) {
      bucket.push_back({.owner = owner, .range = {begin, std::min(begin + share, end)}});
      begin = bucket.back().range.end;
    }
  }
  return published;
}

}  // namespace sluice::nodes
