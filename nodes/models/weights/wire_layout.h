#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/model.h"
#include "engine/contract/world/publication.h"
#include "models/config/config.h"
#include "models/config/output_head.h"
#include "models/config/precision.h"

namespace sluice::nodes {

/// A trained tensor as it lies in a version that goes from ranks that train to ranks that sample.
struct WireTensor {
  std::string name;
  std::vector<int64_t> shape;
  at::ScalarType dtype;  // of what samples: bfloat16 only where that rounds the tensor wherever it is read
  engine::Range range;   // bytes
};

/// What of a model goes over the wire: its trained tensors one after the other, each from a multiple of 64 bytes on. With
/// adapters that is the adapters alone. The same on all ranks of a run, whether they train the model or not. A plain value.
struct WireLayout {
  std::vector<WireTensor> tensors;

  /// `trained`: names and tensors of any dtype, in the order of Weights::named(), of a model of this shape.
  WireLayout(const models::ModelConfig& config, models::Head head, models::Precision precision,
             const std::vector<std::pair<std::string, at::Tensor>>& trained);

  size_t bytes() const { return tensors.empty() ? 0 : tensors.back().range.end; }

  /// Views of a version that begins at `begin`.
  std::vector<std::pair<std::string, at::Tensor>> views(std::byte* begin) const;
};

/// The ranks that versions go from and to.
struct PublicationRanks {
  int own = 0;                 // this one
  int owners = 1;              // the first ones, which train
  std::vector<int> receivers;  // which sample
};

PublicationRanks publication_ranks(const engine::ModelUsage& usage);

/// Each bucket of a version is dealt out evenly to the ranks that own it.
engine::PublicationLayout publication_layout(const std::string& model, const WireLayout& layout, const PublicationRanks& ranks,
                                             int64_t first_version);

}  // namespace sluice::nodes
