#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/pipeline/load.h"
#include "cli/process/exit_codes.h"
#include "cli/run_folder/damaged_lines.h"
#include "cli/run_folder/file_of_run.h"
#include "cli/samples/commands.h"
#include "cli/samples/sample_choice.h"
#include "cli/samples/samples_text.h"
#include "cli/samples/token_colours.h"
#include "cli/terminal/ink.h"
#include "cli/terminal/terminal.h"
#include "engine/contract/run_folder.h"
#include "nodes/columns/column_json.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr size_t kShownUnasked = 10;
constexpr const char* kToRecord =
    "[nodes.samples] type = \"write_jsonl\", inputs = [\"score\"] records prompt, response and score of each sample";

engine::PipelineSpec pipeline_of_run(const fs::path& folder) {
  const auto path = file_of_run(folder, engine::kPipelineFile);
  if (!path)
    throw UserError(folder.string() + " is not the folder of a run: it has no pipeline.toml",
                    "name the folder of a run, such as runs/ppo-20260131-180000");
  return spec_of_run(*path);
}

SampleRecord chosen_record(const engine::PipelineSpec& spec, const std::string& node) {
  const std::vector<SampleRecord> records = sample_records(spec);
  if (records.empty())
    throw UserError("the run has recorded no samples: its pipeline has no node of type write_jsonl", kToRecord);
  if (node.empty()) return records.front();
  const auto found = std::ranges::find(records, node, &SampleRecord::node);
  if (found != records.end()) return *found;
  std::vector<std::string> names;
  for (const SampleRecord& record : records) names.push_back(record.node);
  throw UserError("no node of type write_jsonl is called '" + node + "' in this run", "recorded are " + join(names, ", "));
}

SampleChoice sample_choice_of(const SamplesArguments& arguments) {
  SampleChoice choice{.prompt = arguments.prompt, .sort = arguments.sort, .lowest_first = arguments.worst > 0};
  choice.all_iterations = arguments.iteration == "all";
  if (!arguments.iteration.empty() && !choice.all_iterations) choice.iteration = std::stoll(arguments.iteration);
  if (arguments.best + arguments.worst > 0 && choice.sort.empty()) choice.sort = "score";
  const auto most = static_cast<size_t>(arguments.best + arguments.worst + arguments.samples);
  if (most > 0)
    choice.most = most;
  else if (arguments.format == "text" && !arguments.samples_given)
    choice.most = kShownUnasked;
  return choice;
}

void remark(const std::string& text) { std::fprintf(stderr, "note: %s\n", printable(text).c_str()); }

// The first that the samples have what it takes for; null: none.
const TokenMeasure* recorded_measure(const std::vector<Json>& samples, const std::string& wanted,
                                     const text::Tokenizer& tokenizer) {
  for (const TokenMeasure& measure : token_measures()) {
    const auto has = [&](const Json& sample) { return coloured_tokens(sample, measure, tokenizer).has_value(); };
    if ((wanted.empty() || wanted == measure.word) && std::ranges::any_of(samples, has)) return &measure;
  }
  return nullptr;
}

// What the tokens are coloured by, with a note where they are not.
const TokenMeasure* chosen_measure(const SampleRecord& record, const std::vector<Json>& samples, const std::string& wanted,
                                   const text::Tokenizer* tokenizer) {
  if (tokenizer == nullptr) {
    remark("tokens are not coloured: the tokenizer of the run's models is not where it was");
    return nullptr;
  }
  const TokenMeasure* measure = recorded_measure(samples, wanted, *tokenizer);
  if (measure != nullptr) return measure;
  const auto asked = std::ranges::find_if(token_measures(), [&](const TokenMeasure& one) { return wanted == one.word; });
  const TokenMeasure& missing = asked == token_measures().end() ? token_measures().front() : *asked;
  remark("tokens are not coloured: \"tokens\" and \"" + missing.fields.front().front() + "\" are not both in nodes." +
         record.node + ".fields");
  return nullptr;
}

std::string what_is_shown(const SampleRecord& record, const SampleChoice& choice, const ChosenSamples& chosen,
                          const SampleStyle& style) {
  std::string text = "node '" + record.node + "', ";
  text += choice.all_iterations ? "all iterations" : "iteration " + std::to_string(choice.iteration.value_or(chosen.latest));
  text += ": " + std::to_string(chosen.samples.size()) + " of " + plural(static_cast<int64_t>(chosen.found), "sample");
  if (!choice.prompt.empty()) text += " with \"" + choice.prompt + "\" in the prompt";
  if (!choice.sort.empty()) text += std::string(choice.lowest_first ? ", lowest " : ", highest ") + choice.sort + " first";
  if (style.measure != nullptr) text += std::string("; tokens by ") + style.measure->legend;
  return (style.escaped ? printable(text) : text) + "\n";
}

void print_whole(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_as_text(const SampleRecord& record, const SampleChoice& choice, const ChosenSamples& chosen, const std::string& tokens,
                   const engine::PipelineSpec& spec) {
  SampleStyle style{.escaped = ::isatty(STDOUT_FILENO) == 1, .colour = abilities_of(stdout).colour};
  std::unique_ptr<text::Tokenizer> tokenizer;
  if (style.colour && tokens != "none" && !chosen.samples.empty()) {
    tokenizer = tokenizer_of_samples(spec);
    style.tokenizer = tokenizer.get();
    style.measure = chosen_measure(record, chosen.samples, tokens, tokenizer.get());
  }
  print_whole(what_is_shown(record, choice, chosen, style));
  for (const Json& sample : chosen.samples) print_whole("\n" + sample_text(sample, style));
  std::fflush(stdout);
  if (chosen.samples.size() < chosen.found && choice.most == kShownUnasked)
    remark("--samples N shows more of them, --samples 0 all");
}

}  // namespace

int show_samples(const SamplesArguments& arguments) {
  const engine::PipelineSpec spec = pipeline_of_run(arguments.run_folder);
  const SampleRecord record = chosen_record(spec, arguments.node);
  const auto file = file_of_run(arguments.run_folder, record.path);
  if (!file) throw UserError("node '" + record.node + "' has recorded nothing yet: " + record.path + " is not in the run folder");
  GrowingLines lines(*file);
  const SampleChoice choice = sample_choice_of(arguments);
  const ChosenSamples chosen = choose_samples(record, lines, choice);
  warn_of_damaged_lines(chosen.damage);
  if (arguments.format == "json") {
    for (const Json& sample : chosen.samples) print_text(nodes::dump_json(sample) + "\n");
    return kDone;
  }
  print_as_text(record, choice, chosen, arguments.tokens, spec);
  return kDone;
}

}  // namespace sluice::cli
