#include "cli/checkpoints/commands.h"

#include <memory>

namespace sluice::cli {
namespace {

using Checkpoints = std::shared_ptr<CheckpointsArguments>;

Checkpoints take_run_folder(Command& command) {
  const auto taken = std::make_shared<CheckpointsArguments>();
  command.argument("run", taken->run_folder, Values::folder(), "the run folder").required();
  return taken;
}

void add_list(Command& checkpoints) {
  Command& list = checkpoints.add("list", "iterations, metric, size, and whether every byte is as it was saved",
                                  {"rlhf-run checkpoints runs/ppo", "rlhf-run checkpoints list runs/ppo --format json"});
  const Checkpoints taken = take_run_folder(list);
  list.option("--format", taken->format, Values::one_of({"text", "json"}), "how they are printed (default: text)");
  list.runs([taken] { return list_checkpoints(*taken); });
}

void add_verify_checkpoints(Command& checkpoints) {
  Command& verify = checkpoints.add("verify", "read every byte; damage is named by file and tensor",
                                    {"rlhf-run checkpoints verify runs/ppo", "rlhf-run checkpoints verify runs/ppo 80"});
  const Checkpoints taken = take_run_folder(verify);
  verify.argument("iterations", taken->iterations, Values::whole_number(1, INT32_MAX), "only the one after so many iterations");
  verify.runs([taken] { return verify_checkpoints(*taken); });
}

void add_prune(Command& checkpoints) {
  Command& prune = checkpoints.add("prune", "remove what [checkpoint] keep_last and keep_best do not keep",
                                   {"rlhf-run checkpoints prune runs/ppo --dry-run",
                                    "rlhf-run checkpoints prune runs/ppo --keep-last 2 --keep-best reward/score_mean"});
  const Checkpoints taken = take_run_folder(prune);
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
  const Checkpoints taken = take_run_folder(copy);
  copy.argument("iterations", taken->iterations, Values::whole_number(1, INT32_MAX),
                "after so many iterations (default: the newest intact one)");
  copy.option("--model", taken->model, Values::any(), "its name in the pipeline (default: the only one)");
  copy.option("--to", taken->target, Values::written_folder(), "a new folder").required();
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

void add_checkpoint_commands(Command& program) {
  Command& checkpoints = program.add("checkpoints", "the checkpoints of a run (also: rlhf-run checkpoints RUN, which lists them)",
                                     {"rlhf-run checkpoints runs/ppo", "rlhf-run checkpoints verify runs/ppo",
                                      "rlhf-run checkpoints export runs/ppo --model actor --to my-model"});
  checkpoints.is_short_for("list", Values::folder());
  add_list(checkpoints);
  add_verify_checkpoints(checkpoints);
  add_prune(checkpoints);
  add_export(checkpoints);
}

}  // namespace sluice::cli
