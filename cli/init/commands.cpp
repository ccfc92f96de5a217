#include "cli/init/commands.h"

#include <memory>

#include "cli/terminal/output_file.h"

namespace sluice::cli {

void add_init_command(Command& program) {
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
  init.option("-o,--output", taken->output, Values::file(), "the file that it is written to (default, and -: standard output)");
  init.option("--memory-gib", taken->memory_gib, Values::number_above_0(), "of the machine that runs it (default: of this one)");
  init.flag("--force", taken->force, "overwrite a file that is there");
  init.runs([taken] {
    if (taken->output == kStandardOutput) taken->output.clear();
    return init_pipeline(*taken);
  });
}

}  // namespace sluice::cli
