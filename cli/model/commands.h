#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "cli/command/command.h"

namespace sluice::cli {

/// Reads JSON strings, one a line; prints their token ids.
int model_tokenize(const std::filesystem::path& folder, bool add_special);
/// Reads arrays of ids, one a line; prints the text as a JSON string.
int model_detokenize(const std::filesystem::path& folder);
/// Prints what the folder holds, as text or as one JSON object.
int model_info(const std::filesystem::path& folder, bool json);
/// Reads every tensor: headers, names, shapes, checksums, finite values. Prints a line a problem and returns 1, or what was
/// verified.
int model_verify(const std::filesystem::path& folder);
/// Reads arrays of ids, one a line; prints the log-probability of each id after the first, given those before it.
/// dtype: float32 or bfloat16, of the weights.
int model_logprobs(const std::filesystem::path& folder, const std::string& dtype);

/// How `model sample` and `model chat` draw tokens.
struct SamplingArguments {
  double temperature = 1.0;
  long long top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  long long max_new_tokens = 0;   // 0: sample 256, chat 1024; or what the model has room for
  std::string dtype = "float32";  // or "bfloat16": what products and the KV cache are in
  unsigned long long seed = 0;
};

struct SampleArguments {
  std::filesystem::path folder;
  SamplingArguments sampling;
  std::optional<std::string> prompt;  // none: standard input, unless there are `prompts`
  std::filesystem::path prompts;      // a file, folder or pattern of rows; empty: one prompt
  std::string prompt_field = "prompt";
  std::filesystem::path output;  // empty: standard output
  long long samples = 1;         // of each prompt
  bool chat = false;             // a prompt is what a user says, in the folder's chat template
  bool json = false;             // one object a line instead of the text
  bool tokens = false;           // in those objects, ids and log-probabilities too
};
/// Prints samples in order, each as it grows; or writes one JSON object for each.
int model_sample(const SampleArguments& arguments);

struct ChatArguments {
  std::filesystem::path folder;
  std::filesystem::path template_file;  // empty: the folder's own
  SamplingArguments sampling;
  std::string system;     // empty: what the template says without one
  long long context = 0;  // tokens of the conversation; 0: 8192, or what the model has room for
  bool json = false;      // one object for each answer instead of its text
};
/// Talks with a model: a turn is a line of standard input, its answer is printed as it grows. 1 where a turn got no answer.
int model_chat(const ChatArguments& arguments);

struct RenderArguments {
  std::filesystem::path folder;
  std::filesystem::path template_file;  // empty: the folder's own
  bool generation_prompt = true;        // where the input does not say
  bool mask = false;
};
/// Reads conversations, one a line (or one over several lines): an array of messages, or an object with "messages", "tools", ...
/// Prints the text that the chat template makes of each as a JSON string; with `mask` {"text", "assistant": [[begin, end], ...]}.
int model_render(const RenderArguments& arguments);

/// Adds `model` and its subcommands to the program.
void add_model_commands(Command& program);

}  // namespace sluice::cli
