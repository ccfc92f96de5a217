#include "models/layers/segment.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.h"

namespace sluice::models {
namespace {

using Tensors = SegmentExchange::Tensors;

// The columns that the heads of a place take.
at::Tensor columns_of(const Segment& segment, const at::Tensor& rows, int place) {
  const int64_t columns = rows.size(1) / segment.head_ranks();
  return rows.narrow(1, place % segment.head_ranks() * columns, columns);
}

at::Tensor rows_at(const Segment& segment, const at::Tensor& heads, int place) {
  return heads.narrow(0, segment.begin_of(place) - segment.block_of(segment.block()).begin, segment.size_of(place));
}

// Of the places of the block; the others get nothing.
std::vector<Tensors> for_each_place(const Segment& segment, const Tensors& tensors, auto&& part) {
  std::vector<Tensors> all(static_cast<size_t>(segment.ranks));
  const int first = segment.block() * segment.head_ranks();
  for (int place = first; place < first + segment.head_ranks(); ++place)
    for (const at::Tensor& tensor : tensors) all[static_cast<size_t>(place)].push_back(part(segment, tensor, place));
  return all;
}

void exchange(const Segment& segment, const std::vector<Tensors>& to, const std::vector<Tensors>& from) {
  const auto own = static_cast<size_t>(segment.place);
  for (size_t i = 0; i < to[own].size(); ++i) from[own][i].copy_(to[own][i]);
  segment.exchange->exchange(to, from);
}

}  // namespace

std::vector<at::Tensor> heads_of(const Segment& segment, const std::vector<at::Tensor>& rows) {
  if (segment.head_ranks() == 1) return rows;
  Tensors heads;
  for (const at::Tensor& of : rows) {
    SLUICE_CHECK(of.size(0) == segment.size() && of.size(1) % segment.head_ranks() == 0, "heads that ranks cannot share");
    heads.push_back(at::empty({segment.block_of(segment.block()).size(), of.size(1) / segment.head_ranks()}, of.options()));
  }
  exchange(segment, for_each_place(segment, rows, columns_of), for_each_place(segment, heads, rows_at));
  return heads;
}

std::vector<at::Tensor> rows_of(const Segment& segment, const std::vector<at::Tensor>& heads) {
  if (segment.head_ranks() == 1) return heads;
  Tensors rows;
  for (const at::Tensor& of : heads) {
    SLUICE_CHECK(of.size(0) == segment.block_of(segment.block()).size(), "heads without the rows of the block");
    rows.push_back(at::empty({segment.size(), of.size(1) * segment.head_ranks()}, of.options()));
  }
  exchange(segment, for_each_place(segment, heads, rows_at), for_each_place(segment, rows, columns_of));
  return rows;
}

std::vector<int64_t> offsets_in(const Segment& segment, std::span<const int64_t> sample_offsets) {
  std::vector<int64_t> offsets;
  for (const int64_t offset : sample_offsets) offsets.push_back(std::clamp<int64_t>(offset - segment.begin(), 0, segment.size()));
  return offsets;
}

}  // namespace sluice::models
