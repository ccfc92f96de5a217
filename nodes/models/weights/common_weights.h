#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/numbers/float_range.h"
#include "engine/contract/world/common_memory.h"
#include "models/config/config.h"
#include "models/config/output_head.h"
#include "models/config/precision.h"
#include "models/layers/weight_names.h"
#include "nodes/models/weights/trained_parameters.h"

namespace sluice::nodes {

/// The weights of one model, once for all ranks of a host that train (Rajbhandari et al. 2020, ZeRO, stage 3; here with memory in
/// place of a gather): each rank writes a part of them, and reads all. What is trained lies as an optimizer has it
/// (models/train/flat_layout.h), the rest after each other. Adapters are not among them.
///
/// The memory is as wide as all weights on every rank, and takes what was written: a rank that loads puts only its own part
/// there. Whoever writes later knows that nobody reads. One thread. Failure: as engine/contract/world/common_memory.h.
class CommonWeights {
 public:
  struct Of {
    std::string model;
    const models::ModelConfig& config;
    models::Head head;
    models::Precision precision;
    TrainedParameters trained;
    bool is_updated = false;
    int64_t floats_of_bucket = kFloatsOfABucket;
  };

  /// Waits for: the other ranks. Ends when: they have asked for the memory of this model too.
  CommonWeights(const Of& of, engine::CommonMemory& memory);

  /// LoadOptions::placed: the weight where it stays, with this rank's part of what was read.
  at::Tensor place(const models::ExpectedWeight& weight, const at::Tensor& read);

  /// Waits for: the parts of all other ranks. Ends when: they are there, or one is lost.
  void meet() { memory_.meet(); }

  /// What is trained, [floats]; undefined: nothing.
  const at::Tensor& trained() const { return trained_; }

  /// What of all of them is the other ranks' part.
  int64_t bytes_of_others() const { return bytes_of_others_; }

 private:
  struct Region {
    std::shared_ptr<std::byte> memory;
    int64_t bytes = 0;
    std::vector<FloatRange> own;  // in bytes
  };
  struct Place {
    bool moves;     // is trained
    int64_t begin;  // byte of its region
  };

  void lay_out(const Of& of);
  const Region& region_of(const Place& place) const { return place.moves ? moving_ : frozen_; }

  engine::CommonMemory& memory_;
  Region frozen_, moving_;
  std::map<std::string, Place> places_;  // by weight
  at::Tensor trained_;
  int64_t bytes_of_others_ = 0;
};

}  // namespace sluice::nodes
