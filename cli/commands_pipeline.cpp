#include <memory>

#include "cli/command_families.h"
#include "cli/commands.h"
#include "cli/plugin_options.h"

namespace sluice::cli {
namespace {

void take_pipeline(Command& command, PipelineArguments& into) {
  command.argument("pipeline", into.file, Values::pipeline(), "the pipeline, a TOML file").required();
  command.list("--set", into.sets, Values::any("KEY=VALUE"),
               "override one key: --set nodes.generate.max_new_tokens=64 (may be repeated)");
  take_plugins(command, into.plugins);
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
  take_pipeline(run, taken->run.pipeline);
  run.option("--run-dir", taken->run.run_folder, Values::folder(),
             "the run folder (default: runs/NAME-TIME, with --resume runs/NAME)");
  run.option("--resume", taken->resume, Values::one_of({"auto"}), "go on with what is in the run folder, or start");
  run.flag("--show-samples", taken->run.show_samples_every,
           "show two prompts and responses of each iteration, or with --show-samples=20 of each 20th");
  run.flag("--accept-changes", taken->run.accept_changes, "go on although the pipeline has changed in ways that change results");
  run.runs([taken] {
    taken->run.may_go_on = taken->resume == "auto";
    return run_pipeline(taken->run);
  });
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
  validate.option("--format", taken->format, Values::one_of({"text", "json"}), "how problems are printed (default: text)");
  validate.runs([taken] { return validate_pipeline(taken->pipeline, taken->format); });
}

void add_plan(Command& program) {
  Command& plan = program.add("plan", "what would run where, in which order, with how much memory",
                              {"rlhf-run plan pipelines/ppo.toml", "rlhf-run plan my.toml --config > complete.toml",
                               "rlhf-run plan my.toml --set budget.tokens_in_flight=32768"});
  struct Taken {
    PipelineArguments pipeline;
    std::string format = "text";
    bool config = false;
  };
  const auto taken = std::make_shared<Taken>();
  take_pipeline(plan, taken->pipeline);
  plan.option("--format", taken->format, Values::one_of({"text", "json"}), "how it is printed (default: text)");
  plan.flag("--config", taken->config, "print the effective pipeline with the origin of every value instead");
  plan.runs([taken] { return print_plan(taken->pipeline, taken->format, taken->config); });
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
                                   "rlhf-run simulate my.toml --iterations 3 --trace trace.json"});
  const auto taken = std::make_shared<SimulateArguments>();
  take_pipeline(simulate, taken->pipeline);
  CLI::Option& costs = simulate.option("--costs", taken->costs, Values::folder(),
                                       "what a run has measured: its folder (default: an estimate from the sizes of the models)");
  simulate.option("--gflops", taken->gflops, Values::number_above_0(), "of a core, for the estimate").excludes(&costs);
  simulate.list("--what-if", taken->what_ifs, Values::any("KEY=VALUE"),
                "also with this setting: --what-if schedule.policy_lag=1 (may be repeated)");
  simulate.option("--iterations", taken->iterations, Values::number_above_0(), "fewer than the pipeline says");
  simulate.option("--trace", taken->trace, Values::file(), "write what each executor does when, as a run's trace.json");
  simulate.option("--format", taken->format, Values::one_of({"text", "json"}), "how it is printed (default: text)");
  simulate.runs([taken] { return simulate_pipeline(*taken); });
}

}  // namespace

void add_pipeline_commands(Command& program) {
  add_run(program);
  add_validate(program);
  add_plan(program);
  add_graph(program);
  add_simulate(program);
}

}  // namespace sluice::cli
