#pragma once

#include <string>

#include "base/json/json.h"
#include "cli/checkpoints/base_model.h"
#include "engine/checkpoint/manifest.h"
#include "engine/contract/registry.h"

namespace sluice::cli {

/// What a card is written about.
struct ExportedModel {
  const engine::Manifest& manifest;
  Json series;              // RunSeries::now() of the run; null: nothing is told of them
  std::string name;         // in the pipeline
  std::string title;        // what the card calls it
  bool is_adapter = false;  // its folder has adapters in PEFT's form and no model
  bool is_scorer = false;   // it gives numbers instead of text
  bool has_template = false;
  BaseModel base;
  std::string license;  // an identifier of the Hub; empty: that of the base model
};

/// README.md of a Hugging Face folder: YAML for the Hub, then how the model was trained, on which data, how that went, what was
/// measured, the pipeline, and how to load it. The registry tells what node types do.
std::string model_card(const ExportedModel& model, const engine::Registry& registry);

}  // namespace sluice::cli
