#include "cli/model/sampled_model.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "cli/terminal/terminal.h"
#include "nodes/models/model_text.h"

namespace sluice::cli {
namespace {

void print_now(const std::string& text) {
  print_text(text);
  std::fflush(stdout);
}

}  // namespace

SampledModel load_to_sample(const std::filesystem::path& folder, const SamplingArguments& arguments) {
  if (is_there(folder / "adapter_config.json") && !is_there(folder / "config.json")) {
    throw UserError(folder.string() + " holds adapters without their model",
                    "merge them (merge_and_unload() of PEFT), or train with lora = { save = \"both\", ... }");
  }
  text::Tokenizer tokenizer = text::Tokenizer::load(folder);
  const auto precision = arguments.dtype == "bfloat16" ? models::Precision::kBfloat16 : models::Precision::kFloat32;
  models::PackedModel model = models::load_packed(folder, {.compute = {precision}, .narrow_operands = true});
  models::GenerationOptions options{.sampling = {.temperature = arguments.temperature,
                                                 .top_k = arguments.top_k,
                                                 .top_p = arguments.top_p,
                                                 .min_p = arguments.min_p,
                                                 .repetition_penalty = arguments.repetition_penalty,
                                                 .presence_penalty = arguments.presence_penalty,
                                                 .frequency_penalty = arguments.frequency_penalty},
                                    .end_of_sequence = nodes::sequence_ends(model.config, tokenizer, folder),
                                    .precision = precision};
  return {.tokenizer = std::move(tokenizer), .model = std::move(model), .options = std::move(options)};
}

std::span<const int64_t> without_end(const models::SampleResult& result) {
  const bool ended = result.finish == models::FinishReason::kEndOfSequence;
  return std::span(result.tokens).first(result.tokens.size() - (ended ? 1 : 0));
}

const char* finish_name(models::FinishReason finish) {
  if (finish == models::FinishReason::kEndOfSequence) return "end_of_sequence";
  return finish == models::FinishReason::kLength ? "length" : "stopped";
}

void GrowingText::grown(std::span<const int64_t> tokens) {
  std::string piece;
  for (; printed_ < tokens.size(); ++printed_) piece += decoder_.push(tokens[printed_]);
  if (!piece.empty()) print_now(piece);
}

void GrowingText::finish() { print_now(decoder_.finish()); }

}  // namespace sluice::cli
