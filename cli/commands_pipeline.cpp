#include <memory>

#include "cli/command_families.h"
#include "cli/commands.h"
#include "cli/plugin_options.h"

namespace sluice::cli {
namespace {

constexpr std::int64_t kMostLaunched = 1024;  // on one machine
constexpr std::int64_t kMostRestarts = 1'000'000;
constexpr std::int64_t kMostRanks = 65536;  // of a plan

void take_written(Command& command, PipelineArguments& into) {
  command.argument("pipeline", into.file, Values::pipeline(), "the pipeline, a TOML file or builtin:NAME").required();
  command.list("--set", into.sets, Values::any("KEY=VALUE"),
               "override one key: --set nodes.generate.max_new_tokens=64 (may be repeated)");
}

void take_pipeline(Command& command, PipelineArguments& into) {
  take_written(command, into);
  take_plugins(command, into.plugins);
}

void take_ranks(Command& command, PipelineArguments& into) {
  command.option("--ranks", into.ranks, Values::whole_number(1, kMostRanks),
                 "of a run on so many ranks (default: those of its roles, or 1)");
}

// What `run` takes, and `launch` hands on to it (cli/run_words.h).
void take_run(Command& command, RunArguments& into, std::string& resume) {
  take_pipeline(command, into.pipeline);
  command.option("--run-dir", into.run_folder, Values::folder(),
                 "the run folder (default: runs/NAME-TIME, with --resume runs/NAME)");
  command.option("--resume", resume, Values::one_of({"auto"}), "go on with what is in the run folder, or start");
  command.flag("--show-samples", into.show_samples_every,
               "show two prompts and responses of each iteration, or with --show-samples=20 of each 20th");
  command.flag("--accept-changes", into.accept_changes, "go on although the pipeline has changed in ways that change results");
}

void add_run(Command& program) {
  Command& run = program.add(
      "run", "run a pipeline (also: rlhf-run FILE)",
      {"rlhf-run run pipelines/ppo.toml", "rlhf-run pipelines/grpo.toml --set pipeline.iterations=20 --run-dir runs/short",
       "rlhf-run run pipelines/ppo.toml --run-dir runs/ppo --resume auto"});
  struct Taken {
    RunArguments run;
    std::string resume;
  };
  const auto taken = std::make_shared<Taken>();
  take_run(run, taken->run, taken->resume);
  run.runs([taken] {
    taken->run.may_go_on = taken->resume == "auto";
    return run_pipeline(taken->run);
  });
}

void add_launch(Command& program) {
  Command& launch = program.add("launch", "run a pipeline in several processes of this machine",
                                {"rlhf-run launch --ranks 2 pipelines/ppo.toml",
                                 "rlhf-run launch --ranks 4 pipelines/ppo.toml --run-dir runs/ppo --resume auto"});
  struct Taken {
    LaunchArguments launch;
    std::string resume;
  };
  const auto taken = std::make_shared<Taken>();
  launch.option("--ranks", taken->launch.ranks, Values::whole_number(1, kMostLaunched),
                "how many processes (default: as many as the roles of the pipeline have)");
  launch.option("--restarts", taken->launch.restarts, Values::whole_number(0, kMostRestarts),
                "how often a lost rank of an elastic role is started again (default: 3)");
  launch.option("--port", taken->launch.port, Values::whole_number(1, 65535),
                "of this machine, where they meet (default: one that is free)");
  take_run(launch, taken->launch.run, taken->resume);
  launch.runs([taken] {
    taken->launch.run.may_go_on = taken->resume == "auto";
    return launch_pipeline(taken->launch);
  });
}

void add_init(Command& program) {
  Command& init = program.add("init", "write a short pipeline for a model and a data file",
                              {"rlhf-run init grpo --model Qwen/Qwen2.5-0.5B-Instruct --data gsm8k/train.jsonl -o grpo.toml",
                               "rlhf-run init sft --model models/base --data conversations.jsonl",
                               "rlhf-run init dpo --model models/sft --data pairs.jsonl -o dpo.toml --force"});
  const auto taken = std::make_shared<InitArguments>();
  init.argument("kind", taken->kind, Values::one_of({"grpo", "ppo", "sft", "dpo", "reward"}), "what it does").required();
  init.option("--model", taken->model, Values::folder(), "a Hugging Face folder, or the id of a model in Hugging Face's cache")
      .required();
  init.option("--data", taken->data, Values::file(),
              "JSON lines or a JSON array, plain, gzip or zstd; Parquet, Arrow or Feather; a folder or a pattern of them")
      .required();
  init.option("--prompt-field", taken->prompt_field, Values::any("NAME"), "of the prompt (default: it is looked for)");
  init.option("--answer-field", taken->answer_field, Values::any("NAME"),
              "of the answer that is scored or learned (default: it is looked for)");
  init.option("-o,--output", taken->output, Values::file(), "the file that it is written to (default: standard output)");
  init.option("--memory-gib", taken->memory_gib, Values::number_above_0(), "of the machine that runs it (default: of this one)");
  init.flag("--force", taken->force, "overwrite a file that is there");
  init.runs([taken] { return init_pipeline(*taken); });
}

void add_validate(Command& program) {
  Command& validate =
      program.add("validate", "prove a pipeline without running it",
                  {"rlhf-run validate pipelines/ppo.toml", "rlhf-run validate my.toml --format json | jq '.problems[].message'"});
  struct Taken {
    PipelineArguments pipeline;
    std::string format = "text";
  };
  const auto taken = std::make_shared<Taken>();
  take_pipeline(validate, taken->pipeline);
  validate.flag("--data", taken->pipeline.all_data, "look at every row of the data, not only at the first of each file");
  take_ranks(validate, taken->pipeline);
  validate.option("--format", taken->format, Values::one_of({"text", "json"}), "how problems are printed (default: text)");
  validate.runs([taken] { return validate_pipeline(taken->pipeline, taken->format); });
}

void add_plan(Command& program) {
  Command& plan =
      program.add("plan", "what would run where, in which order, with how much memory",
                  {"rlhf-run plan pipelines/ppo.toml", "rlhf-run plan my.toml --config > complete.toml",
                   "rlhf-run plan my.toml --set budget.tokens_in_flight=32768",
                   "rlhf-run plan my.toml --ranks 4 --set runtime.memory_gib=48 --fit", "rlhf-run plan my.toml --plot"});
  struct Taken {
    PipelineArguments pipeline;
    std::string format = "text";
    bool config = false, fit = false, plot = false;
  };
  const auto taken = std::make_shared<Taken>();
  take_pipeline(plan, taken->pipeline);
  take_ranks(plan, taken->pipeline);
  plan.option("--format", taken->format, Values::one_of({"text", "json"}), "how it is printed (default: text)");
  CLI::Option& config =
      plan.flag("--config", taken->config, "print the effective pipeline with the origin of every value instead");
  CLI::Option& fit =
      plan.flag("--fit", taken->fit, "search the changes with which it fits into the memory that there is instead");
  fit.excludes(&config);
  plan.flag("--plot", taken->plot, "draw learning rates and scheduled numbers over the iterations instead")
      .excludes(&config)
      ->excludes(&fit);
  plan.runs([taken] {
    if (taken->plot) return plot_plan(taken->pipeline, taken->format);
    if (taken->fit) return fit_pipeline(taken->pipeline, taken->format);
    return print_plan(taken->pipeline, taken->format, taken->config);
  });
}

void add_graph(Command& program) {
  Command& graph = program.add(
      "graph", "the graph for Graphviz or Mermaid",
      {"rlhf-run graph pipelines/ppo.toml | dot -Tsvg > ppo.svg", "rlhf-run graph pipelines/ppo.toml --format mermaid"});
  struct Taken {
    PipelineArguments pipeline;
    std::string format = "dot";
    std::string columns = "read";
  };
  const auto taken = std::make_shared<Taken>();
  take_pipeline(graph, taken->pipeline);
  graph.option("--format", taken->format, Values::one_of({"dot", "mermaid"}), "the language of the graph (default: dot)");
  graph.option("--columns", taken->columns, Values::one_of({"read", "all"}),
               "on an edge: read: what the node at its end reads; all: also what only passes through (default: read)");
  graph.runs([taken] { return print_graph(taken->pipeline, taken->format, taken->columns); });
}

void add_simulate(Command& program) {
  Command& simulate = program.add("simulate", "what a run would take and where its time would go, without running it",
                                  {"rlhf-run simulate pipelines/ppo.toml",
                                   "rlhf-run simulate my.toml --costs runs/my-20260131-180000 --what-if schedule.policy_lag=1",
                                   "rlhf-run simulate my.toml --iterations 3 --trace trace.json",
                                   "rlhf-run simulate my.toml --ranks 64 --what-if cluster.network.gigabytes_per_second=12"});
  const auto taken = std::make_shared<SimulateArguments>();
  take_pipeline(simulate, taken->pipeline);
  take_ranks(simulate, taken->pipeline);
  CLI::Option& costs = simulate.option("--costs", taken->costs, Values::folder(),
                                       "what a run has measured: its folder (default: an estimate from the sizes of the models)");
  simulate.option("--gflops", taken->gflops, Values::number_above_0(), "of a core, for the estimate").excludes(&costs);
  simulate.list("--what-if", taken->what_ifs, Values::any("KEY=VALUE"),
                "also with this setting: --what-if schedule.policy_lag=1 (may be repeated)");
  simulate.option("--guesses-right", taken->guesses_right, Values::share(),
                  "with speculation: the share of guessed tokens that are right (default: as it was measured)");
  simulate.option("--iterations", taken->iterations, Values::number_above_0(), "fewer than the pipeline says");
  simulate.option("--trace", taken->trace, Values::file(), "write what each executor does when, as a run's trace.json");
  simulate.option("--format", taken->format, Values::one_of({"text", "json"}), "how it is printed (default: text)");
  simulate.runs([taken] { return simulate_pipeline(*taken); });
}

void add_tools(Command& program) {
  Command& tools = program.add("tools", "what tools the servers of a pipeline have, for the key tools of its sources",
                               {"rlhf-run tools my.toml -o tools.json"});
  struct Taken {
    PipelineArguments pipeline;
    std::filesystem::path output;
  };
  const auto taken = std::make_shared<Taken>();
  take_written(tools, taken->pipeline);
  tools.option("-o,--output", taken->output, Values::file(), "the file that it is written to (default: standard output)");
  tools.runs([taken] { return write_tools(taken->pipeline, taken->output); });
}

}  // namespace

void add_pipeline_commands(Command& program) {
  add_run(program);
  add_launch(program);
  add_init(program);
  add_validate(program);
  add_plan(program);
  add_graph(program);
  add_simulate(program);
  add_tools(program);
}

}  // namespace sluice::cli
