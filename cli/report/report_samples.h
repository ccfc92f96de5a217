#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json/json.h"
#include "cli/run_folder/growing_lines.h"
#include "cli/samples/recorded_samples.h"

namespace sluice::cli {

/// Samples that a run, which may go on, has recorded, for a page: half of them the last, half from the whole run.
///   [{"iteration", "group", "sample", other fields...}]
/// Long texts are cut. Where tokens were written and what they may be coloured by (token_measures()), "pieces" is what was
/// sampled, token by token: [text, ...], and "pieces_by" has their numbers: {"advantage": [number, ...], ...}. Lists are left out
/// else. One thread.
class RunSamples {
 public:
  /// `spec`: the pipeline of the run. `most`: samples of all its files.
  RunSamples(std::filesystem::path run_folder, const engine::PipelineSpec& spec, size_t most);

  /// Reads what is new. What is wrong with lines that are left out is added to `damage`.
  Json now(Problems& damage);

  /// The files that are there by now.
  std::vector<std::filesystem::path> files() const;

 private:
  Json shown(const std::string& line, const std::string& place) const;

  std::filesystem::path run_folder_;
  std::vector<SampleRecord> records_;
  std::unique_ptr<text::Tokenizer> tokenizer_;  // null: there is none
  size_t most_;
  std::map<std::filesystem::path, GrowingLines> lines_;  // of each file
};

}  // namespace sluice::cli
