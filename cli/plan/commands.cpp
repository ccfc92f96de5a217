#include "cli/plan/commands.h"

#include <memory>

#include "cli/command/pipeline_options.h"

namespace sluice::cli {
namespace {

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

}  // namespace

void add_plan_commands(Command& program) {
  add_validate(program);
  add_plan(program);
  add_graph(program);
}

void add_tools_command(Command& program) {
  Command& tools = program.add("tools", "what tools the servers of a pipeline have, for the key tools of its sources",
                               {"rlhf-run tools my.toml -o tools.json"});
  struct Taken {
    PipelineArguments pipeline;
    std::filesystem::path output;
  };
  const auto taken = std::make_shared<Taken>();
  take_written(tools, taken->pipeline);
  tools.option("-o,--output", taken->output, Values::file(), "the file that it is written to (default, and -: standard output)");
  tools.runs([taken] { return write_tools(taken->pipeline, taken->output); });
}

}  // namespace sluice::cli
