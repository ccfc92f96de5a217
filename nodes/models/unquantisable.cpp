#include "nodes/models/unquantisable.h"

#include <string>

namespace sluice::nodes {
namespace {

// key: which says that weights are quantised.
void refuse_quantised(const LanguageModelParams& params, const char* key, const std::string& without, ModelProblems& problems) {
  if (params.optimizer && !params.lora)
    problems.unusable(key, "the weights of " + problems.model() + " are trained, and cannot be quantised",
                      "add lora = { rank = 16 }, whose adapters are trained instead, or " + without);
  if (params.device != "cpu")
    problems.unusable(key, problems.model() + " is on " + params.device + ", where weights are not quantised",
                      "device = \"cpu\", or " + without);
}

}  // namespace

void find_unquantisable(const LanguageModelParams& params, ModelProblems& problems) {
  if (params.quantization_group % models::QuantisationOptions::kGroupStep != 0)
    problems.unusable("quantization_group",
                      "quantization_group = " + std::to_string(params.quantization_group) + " is no multiple of 32",
                      "32, 64, 128, ...: small groups are more exact, large ones take less memory");
  if (params.quantization != models::Quantisation::kNone)
    return refuse_quantised(params, "quantization", "remove quantization", problems);
  if (params.quantization_group != LanguageModelParams().quantization_group)
    problems.without_effect("quantization_group", "nothing of it is quantised", "add quantization = \"int4\", or remove it");
}

void find_unquantisable_folder(const LanguageModelParams& params, ModelProblems& problems) {
  if (!params.stored) return;
  if (params.quantization != models::Quantisation::kNone)
    problems.without_effect("quantization", "the folder holds codes of 4 bits, which are read as they are",
                            "remove quantization");
  refuse_quantised(params, "checkpoint", "use a folder that is not quantised", problems);
}

}  // namespace sluice::nodes
