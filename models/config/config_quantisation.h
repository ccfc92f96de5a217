#pragma once

#include <filesystem>
#include <optional>

#include "models/config/config_file.h"
#include "models/config/quantisation.h"

namespace sluice::models {

/// How a folder holds the matrices of its layers that were quantised before: codes of 4 bits, in groups of consecutive inputs of
/// an output, as AutoGPTQ and GPTQModel write them (GPTQ, Frantar et al. 2022) or AutoAWQ (AWQ, Lin et al. 2023).
struct StoredQuantisation {
  enum class Format {
    kGptq,    // zeros are stored less one
    kGptqV2,  // zeros are stored as they are
    kAwq,
  };

  Format format = Format::kGptq;
  int64_t group = 128;

  QuantisationOptions options() const { return {Quantisation::kInt4, group}; }
};

/// What `quantization_config` of config.json says; nothing where there is none. Throws UserError naming file and key for what is
/// not read: another method, other bits, an order of its own (desc_act), another layout.
std::optional<StoredQuantisation> stored_quantisation(const ConfigObject& file);

/// The same of a folder, whose quantize_config.json, if there is one, says it where config.json does not, as older folders have
/// it.
std::optional<StoredQuantisation> stored_quantisation(const std::filesystem::path& folder);

}  // namespace sluice::models
