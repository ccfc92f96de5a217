#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "engine/contract/spec.h"
#include "text/tokenizer.h"

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

/// A number for each token that was sampled, in the tokens' texts, which joined are what was sampled.
using NumberedTokens = std::vector<std::pair<std::string, double>>;

/// Of a sample that has `tokens` and a list `field` of numbers for the last of them, the actions; nothing: it has not.
std::optional<NumberedTokens> numbered_tokens(const Json& sample, const std::string& field, const text::Tokenizer& tokenizer);

}  // namespace sluice::cli
