#include "cli/run_words.h"

namespace sluice::cli {

// A value stands in one word with its option, so that it may begin as it likes.
std::vector<std::string> words_of(const RunArguments& arguments) {
  const PipelineArguments& pipeline = arguments.pipeline;
  std::vector<std::string> words{"run", pipeline.file.string()};
  for (const std::string& set : pipeline.sets) words.push_back("--set=" + set);
  for (const std::string& plugin : pipeline.plugins.files) words.push_back("--plugin=" + plugin);
  if (pipeline.plugins.all) words.emplace_back("--plugins");
  if (!arguments.run_folder.empty()) words.push_back("--run-dir=" + arguments.run_folder.string());
  if (arguments.may_go_on) words.emplace_back("--resume=auto");
  if (arguments.show_samples_every > 0) words.push_back("--show-samples=" + std::to_string(arguments.show_samples_every));
  if (arguments.accept_changes) words.emplace_back("--accept-changes");
  return words;
}

}  // namespace sluice::cli
