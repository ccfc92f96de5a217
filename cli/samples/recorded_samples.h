#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json.h"
#include "engine/contract/spec/spec.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {

/// What a node of type `write_jsonl` records of a run: one JSON object a line of a file in the run folder.
struct SampleRecord {
  std::string node;
  std::string path;                 // in the run folder
  std::vector<std::string> fields;  // columns
};

/// In the order of the pipeline. `spec`: the pipeline of the run, as its folder keeps it.
std::vector<SampleRecord> sample_records(const engine::PipelineSpec& spec);

/// Of the first model whose folder has one; null: it is gone, or cannot be read.
std::unique_ptr<text::Tokenizer> tokenizer_of_samples(const engine::PipelineSpec& spec);

/// A line of such a file. Throws UserError naming `place` for what is no sample.
Json sample_in(const std::string& line, const std::string& place);

/// The tokens from the first action on, with a number for each action; NaN for what others said between them.
using NumberedTokens = std::vector<std::pair<std::string, double>>;

/// Of a sample that has `tokens` and a list `field` of numbers for its actions, which are the last tokens unless `action_tokens`
/// has their places; nothing: it has not.
std::optional<NumberedTokens> numbered_tokens(const Json& sample, const std::string& field, const text::Tokenizer& tokenizer);

}  // namespace sluice::cli
