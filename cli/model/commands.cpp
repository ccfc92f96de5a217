#include "cli/model/commands.h"

#include <memory>

#include "cli/terminal/output_file.h"
#include "models/folder/hub_cache.h"

namespace sluice::cli {
namespace {

void take_folder(Command& command, std::filesystem::path& into) {
  command.argument("folder", into, Values::folder(), "a Hugging Face model folder, or the id of a model of the Hub in its cache")
      .required();
}

std::filesystem::path meant(const std::filesystem::path& folder) { return models::model_folder(folder.string()); }

void add_tokenize(Command& model) {
  Command& tokenize = model.add("tokenize", "JSON strings in, one a line; arrays of ids out",
                                {"echo '\"2 + 2 =\"' | rlhf-run model tokenize pipelines/models/tiny-arithmetic"});
  struct Taken {
    std::filesystem::path folder;
    bool add_special = false;
  };
  const auto taken = std::make_shared<Taken>();
  take_folder(tokenize, taken->folder);
  tokenize.flag("--add-special", taken->add_special, "also the tokens that the post-processor adds");
  tokenize.runs([taken] { return model_tokenize(meant(taken->folder), taken->add_special); });
}

void add_detokenize(Command& model) {
  Command& detokenize = model.add("detokenize", "arrays of ids in, one a line; JSON strings out",
                                  {"echo '[5, 13, 5]' | rlhf-run model detokenize pipelines/models/tiny-arithmetic"});
  const auto folder = std::make_shared<std::filesystem::path>();
  take_folder(detokenize, *folder);
  detokenize.runs([folder] { return model_detokenize(meant(*folder)); });
}

void add_render(Command& model) {
  Command& render = model.add("render", "conversations as JSON in, one a line; the text of the chat template as JSON strings out",
                              {"echo '[{\"role\": \"user\", \"content\": \"Hello\"}]' | rlhf-run model render FOLDER",
                               "rlhf-run model render FOLDER --mask --no-generation-prompt < conversations.jsonl"});
  struct Taken {
    RenderArguments render;
    bool no_generation_prompt = false;
  };
  const auto taken = std::make_shared<Taken>();
  take_folder(render, taken->render.folder);
  render.flag("--no-generation-prompt", taken->no_generation_prompt,
              "end with the last message, not where the assistant begins to speak");
  render.flag("--mask", taken->render.mask, "also the bytes that the assistant said");
  render.option("--template", taken->render.template_file, Values::file(), "another template than the folder's");
  render.runs([taken] {
    taken->render.generation_prompt = !taken->no_generation_prompt;
    taken->render.folder = meant(taken->render.folder);
    return model_render(taken->render);
  });
}

void add_logprobs(Command& model) {
  Command& logprobs = model.add("logprobs", "arrays of ids in, one a line; log-probability of each id after the first out",
                                {"echo '[5, 13, 5]' | rlhf-run model logprobs pipelines/models/tiny-arithmetic"});
  struct Taken {
    std::filesystem::path folder;
    std::string dtype = "float32";
  };
  const auto taken = std::make_shared<Taken>();
  take_folder(logprobs, taken->folder);
  logprobs.option("--dtype", taken->dtype, Values::one_of({"float32", "bfloat16"}), "of the weights (default: float32)");
  logprobs.runs([taken] { return model_logprobs(meant(taken->folder), taken->dtype); });
}

void add_info(Command& model) {
  Command& info = model.add("info", "what the folder holds: family, sizes, positions, files",
                            {"rlhf-run model info pipelines/models/tiny-arithmetic", "rlhf-run model info FOLDER --json"});
  struct Taken {
    std::filesystem::path folder;
    bool json = false;
  };
  const auto taken = std::make_shared<Taken>();
  take_folder(info, taken->folder);
  info.flag("--json", taken->json, "as one JSON object");
  info.runs([taken] { return model_info(meant(taken->folder), taken->json); });
}

void add_verify(Command& model) {
  Command& verify =
      model.add("verify", "read every tensor: names, shapes, checksums, finite values", {"rlhf-run model verify FOLDER"});
  const auto folder = std::make_shared<std::filesystem::path>();
  take_folder(verify, *folder);
  verify.runs([folder] { return model_verify(meant(*folder)); });
}

void take_sampling(Command& command, SamplingArguments& into, const std::string& longest) {
  command.option("--max-new-tokens", into.max_new_tokens, Values::number_above_0(), longest);
  command.option("--temperature", into.temperature, Values::number_from_0(), "0: always the likeliest token");
  command.option("--top-k", into.top_k, Values::number_from_0(), "only the k likeliest tokens; 0: all");
  command.option("--top-p", into.top_p, Values::share_above_0(), "only the likeliest tokens with this much probability");
  command.option("--min-p", into.min_p, Values::share(), "only tokens so many times as likely as the likeliest");
  command.option("--repetition-penalty", into.repetition_penalty, Values::number_above_0(),
                 "divides positive logits of tokens that prompt or response have");
  command.option("--presence-penalty", into.presence_penalty, Values::any("NUMBER"),
                 "taken off the logits of tokens that the response has");
  command.option("--frequency-penalty", into.frequency_penalty, Values::any("NUMBER"),
                 "the same, for each time that it has them");
  command.option("--dtype", into.dtype, Values::one_of({"float32", "bfloat16"}), "to compute in (default: float32)");
  command.option("--seed", into.seed, Values::number_from_0(), "of the random stream");
}

void add_sample(Command& model) {
  Command& sample =
      model.add("sample", "continue a prompt, or all prompts of a file",
                {"rlhf-run model sample pipelines/models/tiny-arithmetic --prompt '2+2=' --temperature 0",
                 "rlhf-run model sample FOLDER --chat --prompt 'What is a monad?' --samples 2",
                 "rlhf-run model sample FOLDER --json < prompt.txt",
                 "rlhf-run model sample FOLDER --prompts test.parquet --prompt-field question --chat -n 4 -o samples.jsonl"});
  const auto taken = std::make_shared<SampleArguments>();
  const auto text = std::make_shared<std::string>();  // CLI11 takes an empty one for none
  take_folder(sample, taken->folder);
  CLI::Option& prompt = sample.option("--prompt", *text, Values::any(),
                                      "the text to continue (default: standard input, without the end of its last line)");
  CLI::Option& prompts = sample.option("--prompts", taken->prompts, Values::file(),
                                       "continue each row of JSON lines, Parquet or Arrow: a file, a folder or a pattern");
  prompts.excludes(&prompt);
  sample.option("--prompt-field", taken->prompt_field, Values::any("NAME"), "its text, or its list of messages (default: prompt)")
      .needs(&prompts);
  sample.option("-n,--samples", taken->samples, Values::number_above_0(), "how many of each prompt");
  sample.option("-o,--output", taken->output, Values::file(), "the file that they are written to, as with --json")
      .needs(&prompts);
  take_sampling(sample, taken->sampling, "the longest response (default: 256, or what the model has room for)");
  sample.flag("--chat", taken->chat, "the prompt is a user's message, put into the folder's chat template");
  sample.flag("--json", taken->json,
              "one object a line: prompt, row, index, text, finish (end_of_sequence or length), token_count, logprob_sum, seed");
  sample.flag("--tokens", taken->tokens, "in these objects also tokens and logprobs, the ids and their log-probabilities");
  sample.runs([taken, text, &prompt] {
    if (prompt.count() > 0) taken->prompt = *text;
    if (taken->output == kStandardOutput) {
      taken->output.clear();
      taken->json = true;
    }
    taken->folder = meant(taken->folder);
    return model_sample(*taken);
  });
}

void add_chat(Command& model) {
  Command& chat =
      model.add("chat", "talk with a model, through its chat template",
                {"rlhf-run model chat FOLDER", "rlhf-run model chat FOLDER --system 'Answer briefly.' --temperature 0.7",
                 "printf 'What is 2 + 2?\\nAnd 3 + 3?\\n' | rlhf-run model chat FOLDER --temperature 0"});
  const auto taken = std::make_shared<ChatArguments>();
  take_folder(chat, taken->folder);
  chat.option("--system", taken->system, Values::any(), "the system message that the conversation begins with");
  chat.option("--template", taken->template_file, Values::file(), "another template than the folder's");
  chat.option("--context", taken->context, Values::number_above_0(),
              "the longest conversation, in tokens (default: 8192, or what the model has room for)");
  take_sampling(chat, taken->sampling, "the longest answer (default: 1024, or what the context has room for)");
  chat.flag(
      "--json", taken->json,
      "one object for each answer: text, finish (end_of_sequence, length or stopped), tokens, context_tokens, reused_tokens");
  chat.runs([taken] {
    taken->folder = meant(taken->folder);
    return model_chat(*taken);
  });
}

}  // namespace

void add_model_commands(Command& program) {
  Command& model = program.add("model", "use a model folder, one function at a time",
                               {"rlhf-run model info pipelines/models/tiny-arithmetic",
                                "rlhf-run model sample pipelines/models/tiny-arithmetic --prompt '2+2=' --temperature 0",
                                "echo '\"2 + 2 =\"' | rlhf-run model tokenize pipelines/models/tiny-arithmetic"});
  add_tokenize(model);
  add_detokenize(model);
  add_render(model);
  add_logprobs(model);
  add_info(model);
  add_verify(model);
  add_sample(model);
  add_chat(model);
}

}  // namespace sluice::cli
