#pragma once

#include <string>

#include "cli/run_folder/recorded_pipeline.h"

namespace sluice::cli {

/// What a model was before it was trained, as others know it.
struct BaseModel {
  std::string id;        // on the Hub; empty: not known, or it began with random weights
  std::string revision;  // a commit; empty: not known
  bool random = false;   // it began with random weights

  // What the card of its folder says of its license; empty: it says nothing, or there is no card.
  std::string license, license_name, license_link;
};

/// Of [models.`model`] of a run. A folder of Hugging Face's cache has the id in its path; any other one has no id.
BaseModel base_model(const RecordedPipeline& pipeline, const std::string& model);

}  // namespace sluice::cli
