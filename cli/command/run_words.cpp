#include "cli/command/run_words.h"

#include "base/text/shell_word.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {
namespace {

void add_plugins(const PluginArguments& plugins, std::vector<std::string>& words) {
  for (const std::string& plugin : plugins.files) words.push_back("--plugin=" + plugin);
  if (plugins.all) words.emplace_back("--plugins");
}

}  // namespace

// A value stands in one word with its option, so that it may begin as it likes.
std::vector<std::string> words_of(const RunArguments& arguments) {
  const PipelineArguments& pipeline = arguments.pipeline;
  std::vector<std::string> words{"run", pipeline.file.string()};
  for (const std::string& set : pipeline.sets) words.push_back("--set=" + set);
  add_plugins(pipeline.plugins, words);
  if (!arguments.run_folder.empty()) words.push_back("--run-dir=" + arguments.run_folder.string());
  if (arguments.may_go_on) words.emplace_back("--resume=auto");
  if (arguments.show_samples_every > 0) words.push_back("--show-samples=" + std::to_string(arguments.show_samples_every));
  if (arguments.accept_changes) words.emplace_back("--accept-changes");
  return words;
}

std::vector<std::string> words_of(const ResumeArguments& arguments) {
  std::vector<std::string> words{"resume", arguments.run_folder.string()};
  if (arguments.from) words.push_back("--from=" + std::to_string(*arguments.from));
  for (const std::string& set : arguments.sets) words.push_back("--set=" + set);
  add_plugins(arguments.plugins, words);
  if (arguments.show_samples_every > 0) words.push_back("--show-samples=" + std::to_string(arguments.show_samples_every));
  if (arguments.accept_changes) words.emplace_back("--accept-changes");
  return words;
}

// Roles say how many ranks there are. Without them the number is that of before, which no file says.
std::string command_to_go_on(const engine::Plan& plan, const std::filesystem::path& folder) {
  const std::string there = shell_word(folder.string());
  const std::string plugins = plan.plugins.empty() ? "" : " --plugins";  // which may lie elsewhere than the copy of the pipeline
  if (plan.ranks == 1) return "rlhf-run resume " + there;
  if (!plan.all_roles().empty()) return "rlhf-run resume " + there + plugins;
  return "rlhf-run launch --ranks " + std::to_string(plan.ranks) + " " + shell_word((folder / engine::kPipelineFile).string()) +
         plugins + " --resume auto --run-dir " + there;
}

}  // namespace sluice::cli
