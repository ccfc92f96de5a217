#include <cstdint>
#include <memory>

#include "cli/command_families.h"
#include "cli/commands.h"
#include "cli/plugin_options.h"
#include "engine/contract/settings.h"

namespace sluice::cli {
namespace {

void add_resume(Command& program) {
  Command& resume = program.add("resume", "go on with a run from its newest intact checkpoint",
                                {"rlhf-run resume runs/ppo-20260131-180000",
                                 "rlhf-run resume runs/ppo --set pipeline.iterations=200", "rlhf-run resume runs/ppo --from 80"});
  const auto taken = std::make_shared<ResumeArguments>();
  resume.argument("folder", taken->run_folder, Values::folder(), "the run folder").required();
  resume.option("--from", taken->from, Values::whole_number(1, INT32_MAX), "an older checkpoint, by its count of iterations");
  resume.list("--set", taken->sets, Values::any("KEY=VALUE"),
              "override one key: --set pipeline.iterations=200 (may be repeated)");
  take_plugins(resume, taken->plugins);
  resume.flag("--show-samples", taken->show_samples_every,
              "show two prompts and responses of each iteration, or with --show-samples=20 of each 20th");
  resume.flag("--accept-changes", taken->accept_changes, "also where they change results");
  resume.runs([taken] { return resume_run(*taken); });
}

void add_top(Command& program) {
  Command& top = program.add("top", "watch a run: what works, what waits for what, what is in flight (q quits)",
                             {"rlhf-run top runs/ppo-20260131-180000", "rlhf-run top runs/ppo --once"});
  struct Taken {
    std::filesystem::path folder;
    bool once = false;
  };
  const auto taken = std::make_shared<Taken>();
  top.argument("folder", taken->folder, Values::folder(), "the run folder").required();
  top.flag("--once", taken->once, "print it once, also on a terminal");
  top.runs([taken] { return show_top(taken->folder, taken->once); });
}

Values optional_port() {
  Values values = Values::whole_number(0, 65535);
  values.shown = "[PORT]";
  return values;
}

void add_report(Command& program) {
  Command& report = program.add("report", "write one HTML file about one or several runs, or serve a page that follows them",
                                {"rlhf-run report runs/ppo-20260131-180000 -o ppo.html",
                                 "rlhf-run report runs/ppo runs/grpo -o both.html", "rlhf-run report runs/ppo --serve"});
  struct Taken {
    std::vector<std::string> folders;
    ReportArguments report;
    std::string port;
  };
  const auto taken = std::make_shared<Taken>();
  report.argument("run", taken->folders, Values::folder(), "the run folders, which are compared").required();
  CLI::Option& output = report.option("-o,--output", taken->report.output, Values::file(),
                                      "the file that it is written to (default: standard output)");
  CLI::Option& serve = report.option("--serve", taken->port, optional_port(),
                                     "serve the page at this port of 127.0.0.1 instead; without one, at one that is free");
  serve.expected(0, 1)->excludes(&output);
  report.runs([taken, &serve] {
    taken->report.run_folders.assign(taken->folders.begin(), taken->folders.end());
    if (serve.count() == 0) return report_runs(taken->report);
    taken->report.port = static_cast<std::uint16_t>(std::stoi("0" + taken->port));
    return serve_report(taken->report);
  });
}

Values iteration_or_all() {
  Values values{.shown = "NUMBER|all", .offer = Values::Offer::kWords, .words = {"all"}};
  values.problem = [](const std::string& written) {
    return written == "all" ? std::string() : Values::whole_number(0, INT64_MAX).problem(written);
  };
  return values;
}

void add_samples(Command& program) {
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
                 "highest first: a field such as score, the mean of a list, or length");
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

void add_track(Command& program) {
  Command& track = program.add("track", "tell experiment trackers what a run folder has that they do not know yet",
                               {"rlhf-run track runs/ppo-20260131-180000 --to wandb",
                                "rlhf-run track runs/ppo --to mlflow --to tensorboard --project sums"});
  const auto taken = std::make_shared<TrackArguments>();
  track.argument("run", taken->run_folder, Values::folder(), "the run folder").required();
  track.list("--to", taken->trackers, Values::one_of(engine::known_trackers()), "a tracker (may be repeated)").required();
  track.option("--project", taken->project, Values::any("NAME"),
               "what they file it under (default: [log] project of the run, or its pipeline's name)");
  track.runs([taken] { return track_run(*taken); });
}

using Checkpoints = std::shared_ptr<CheckpointsArguments>;

Checkpoints take_run(Command& command) {
  const auto taken = std::make_shared<CheckpointsArguments>();
  command.argument("run", taken->run_folder, Values::folder(), "the run folder").required();
  return taken;
}

void add_list(Command& checkpoints) {
  Command& list = checkpoints.add("list", "iterations, metric, size, and whether every byte is as it was saved",
                                  {"rlhf-run checkpoints runs/ppo", "rlhf-run checkpoints list runs/ppo --format json"});
  const Checkpoints taken = take_run(list);
  list.option("--format", taken->format, Values::one_of({"text", "json"}), "how they are printed (default: text)");
  list.runs([taken] { return list_checkpoints(*taken); });
}

void add_verify_checkpoints(Command& checkpoints) {
  Command& verify = checkpoints.add("verify", "read every byte; damage is named by file and tensor",
                                    {"rlhf-run checkpoints verify runs/ppo", "rlhf-run checkpoints verify runs/ppo 80"});
  const Checkpoints taken = take_run(verify);
  verify.argument("iterations", taken->iterations, Values::whole_number(1, INT32_MAX), "only the one after so many iterations");
  verify.runs([taken] { return verify_checkpoints(*taken); });
}

void add_prune(Command& checkpoints) {
  Command& prune = checkpoints.add("prune", "remove what [checkpoint] keep_last and keep_best do not keep",
                                   {"rlhf-run checkpoints prune runs/ppo --dry-run",
                                    "rlhf-run checkpoints prune runs/ppo --keep-last 2 --keep-best reward/score_mean"});
  const Checkpoints taken = take_run(prune);
  prune.option("--keep-last", taken->keep_last, Values::number_from_0(), "how many of the newest stay; 0: all");
  prune.option("--keep-best", taken->keep_best, Values::any(), "a metric: the one where it is best stays too");
  prune.option("--best", taken->best, Values::one_of({"highest", "lowest"}), "which value of that metric is best");
  prune.option("--folder", taken->folder, Values::folder(),
               "where the run was told to keep its checkpoints, if not in its folder: [checkpoint] folder");
  prune.flag("--dry-run", taken->dry_run, "only say what would be removed");
  prune.runs([taken] { return prune_checkpoints(*taken); });
}

void add_export(Command& checkpoints) {
  Command& copy = checkpoints.add("export", "write one model of a checkpoint as a Hugging Face folder, with a model card",
                                  {"rlhf-run checkpoints export runs/ppo --model actor --to my-model",
                                   "rlhf-run checkpoints export runs/ppo 80 --to my-model --dtype bfloat16",
                                   "rlhf-run checkpoints export runs/lora --to my-adapter --save adapter --license apache-2.0"});
  const Checkpoints taken = take_run(copy);
  copy.argument("iterations", taken->iterations, Values::whole_number(1, INT32_MAX),
                "after so many iterations (default: the newest intact one)");
  copy.option("--model", taken->model, Values::any(), "its name in the pipeline (default: the only one)");
  copy.option("--to", taken->target, Values::folder(), "a new folder").required();
  copy.option("--dtype", taken->dtype, Values::one_of({"float32", "bfloat16", "float16"}),
              "of the tensors (default: as they are)");
  copy.option("--save", taken->save, Values::one_of({"merged", "adapter"}),
              "of a model with adapters: the model alone, or the adapters alone (default: all that the checkpoint has)");
  copy.option("--license", taken->license, Values::any("ID"),
              "for the model card (default: what the card of the base model says)");
  copy.option("--base-model", taken->base_model, Values::any("ID"),
              "what the base model is called on the Hub (default: known if it lies in Hugging Face's cache)");
  copy.runs([taken] { return export_checkpoint(*taken); });
}

}  // namespace

void add_run_folder_commands(Command& program) {
  add_resume(program);
  add_top(program);
  add_report(program);
  add_samples(program);
  add_track(program);
  Command& checkpoints = program.add("checkpoints", "the checkpoints of a run (also: rlhf-run checkpoints RUN, which lists them)",
                                     {"rlhf-run checkpoints runs/ppo", "rlhf-run checkpoints verify runs/ppo",
                                      "rlhf-run checkpoints export runs/ppo --model actor --to my-model"});
  add_list(checkpoints);
  add_verify_checkpoints(checkpoints);
  add_prune(checkpoints);
  add_export(checkpoints);
}

}  // namespace sluice::cli
