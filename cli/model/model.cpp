#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>

#include "base/error.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "cli/model/commands.h"
#include "cli/process/exit_codes.h"
#include "cli/terminal/terminal.h"
#include "models/folder/folder.h"
#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {
namespace {

// One answer for each line of standard input, printed at once, so that a caller can talk to the program.
int for_each_line(const std::function<Json(const Json& input, const std::string& place)>& answer) {
  std::string line;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    if (trim(line).empty()) continue;
    const std::string place = "standard input, line " + std::to_string(number);
    print_text(answer(parse_json(line, "standard input", number), place).dump(-1, ' ', false, Json::error_handler_t::replace) +
               "\n");
    std::fflush(stdout);
  }
  return kDone;
}

std::vector<int64_t> ids_of(const Json& input, const std::string& place, int64_t vocab_size) {
  if (!input.is_array()) throw UserError(place + ": expected an array of token ids");
  std::vector<int64_t> ids;
  for (const Json& id : input) {
    const bool valid = id.is_number_integer() && id.get<int64_t>() >= 0 && id.get<int64_t>() < vocab_size;
    if (!valid) throw UserError(place + ": " + id.dump() + " is not a token id from 0 to " + std::to_string(vocab_size - 1));
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

models::Transformer load_language_model(const std::filesystem::path& folder, const std::string& dtype = "float32") {
  return models::load_transformer(folder, {.dtype = dtype == "bfloat16" ? at::kBFloat16 : at::kFloat});
}

}  // namespace

int model_tokenize(const std::filesystem::path& folder, bool add_special) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(folder);
  return for_each_line([&](const Json& input, const std::string& place) -> Json {
    if (!input.is_string()) throw UserError(place + ": expected a JSON string");
    return tokenizer.encode(input.get<std::string>(), add_special);
  });
}

int model_detokenize(const std::filesystem::path& folder) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(folder);
  return for_each_line([&](const Json& input, const std::string& place) -> Json {
    return tokenizer.decode(ids_of(input, place, std::numeric_limits<int64_t>::max()));
  });
}

int model_logprobs(const std::filesystem::path& folder, const std::string& dtype) {
  const models::Transformer model = load_language_model(folder, dtype);
  const at::NoGradGuard no_grad;
  return for_each_line([&](const Json& input, const std::string& place) -> Json {
    const std::vector<int64_t> ids = ids_of(input, place, model.config().vocab_size);
    const auto count = static_cast<int64_t>(ids.size());
    if (count > model.config().max_positions) {
      throw UserError(place + ": " + plural(count, "token") + ", but the model has " +
                      std::to_string(model.config().max_positions) + " positions");
    }
    if (count < 2) return Json::array();
    const at::Tensor tokens = at::tensor(ids);
    const std::vector<int64_t> offsets{0, count};
    const at::Tensor hidden = model.hidden_states(tokens, offsets).slice(0, 0, count - 1);
    const at::Tensor logprobs =
        models::action_logprobs(hidden, model.weights().head, tokens.slice(0, 1), {.softcap = model.config().logit_softcap});
    return std::vector<float>(logprobs.data_ptr<float>(), logprobs.data_ptr<float>() + logprobs.numel());
  });
}

}  // namespace sluice::cli
