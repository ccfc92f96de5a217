#include "cli/samples/commands.h"

#include <cstdint>
#include <memory>

namespace sluice::cli {
namespace {

Values iteration_or_all() {
  Values values{.shown = "NUMBER|all", .offer = Values::Offer::kWords, .words = {"all"}};
  values.problem = [](const std::string& written) {
    return written == "all" ? std::string() : Values::whole_number(0, INT64_MAX).problem(written);
  };
  return values;
}

}  // namespace

void add_samples_command(Command& program) {
  Command& samples = program.add("samples", "show samples that a run has recorded: of its latest iteration, the best, the worst",
                                 {"rlhf-run samples runs/ppo", "rlhf-run samples runs/ppo --worst 5 --tokens advantage",
                                  "rlhf-run samples runs/ppo --iteration all --prompt 'train leaves' --sort length",
                                  "rlhf-run samples runs/ppo --format json | jq .response"});
  const auto taken = std::make_shared<SamplesArguments>();
  samples.argument("run", taken->run_folder, Values::folder(), "the run folder").required();
  samples.option("--iteration", taken->iteration, iteration_or_all(),
                 "of this one, counted as in metrics.jsonl (default: the latest)");
  samples.option("--node", taken->node, Values::any("NAME"),
                 "the node of type write_jsonl that recorded them (default: the first)");
  samples.option("--prompt", taken->prompt, Values::any("TEXT"), "only those whose prompt has this text in it");
  samples.option("--sort", taken->sort, Values::any("FIELD"),
                 "highest first: a field such as score, the mean of a list, or length (in tokens, else characters)");
  CLI::Option& best =
      samples.option("--best", taken->best, Values::whole_number(1, INT32_MAX), "so many with the highest score, or --sort");
  CLI::Option& worst =
      samples.option("--worst", taken->worst, Values::whole_number(1, INT32_MAX), "so many with the lowest, lowest first");
  CLI::Option& count = samples.option("--samples", taken->samples, Values::whole_number(0, INT32_MAX),
                                      "how many; 0: all (default: 10; as JSON all)");
  worst.excludes(&best);
  count.excludes(&best)->excludes(&worst);
  samples.option("--tokens", taken->tokens, Values::one_of({"advantage", "kl", "probability", "none"}),
                 "what a terminal colours them by (default: the first of these that was recorded)");
  samples.option("--format", taken->format, Values::one_of({"text", "json"}), "how they are printed (default: text)");
  samples.runs([taken, &count] {
    taken->samples_given = count.count() > 0;
    return show_samples(*taken);
  });
}

}  // namespace sluice::cli
