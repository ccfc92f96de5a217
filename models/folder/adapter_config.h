#pragma once

#include <filesystem>
#include <string>

#include "base/json/json.h"

namespace sluice::models {

/// What to do with an adapter of which more counts than the factors that are read.
constexpr const char* kMergeAdapter = "merge it into its model with PEFT (merge_and_unload), and take that as checkpoint";

/// What an `adapter_config.json` of PEFT says of the factors beside it: how much they count, and that the model they belong to
/// computes (W + scale · B A) x with the W of its base, which is what we compute.
class AdapterConfig {
 public:
  /// Throws UserError naming file and key: no LoRA, one that changes its base or computes otherwise, or a key that is not known
  /// and not off.
  explicit AdapterConfig(const std::filesystem::path& file);

  /// How much the change of the module of this name counts: alpha / rank, or alpha / √rank. Throws UserError where these are no
  /// numbers.
  double scale_of(const std::string& module) const;

 private:
  std::string file_;
  Json config_;
};

}  // namespace sluice::models
