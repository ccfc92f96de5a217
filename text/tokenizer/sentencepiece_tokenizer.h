#pragma once

#include <filesystem>
#include <optional>

namespace sluice::text {

struct TokenizerJson;

/// The model of SentencePiece in a folder that has no tokenizer.json: tokenizer.model or spiece.model; nothing if it has
/// neither.
std::optional<std::filesystem::path> sentencepiece_model_in(const std::filesystem::path& folder);

/// The tokenizer.json that says what a model of SentencePiece says, in the steps that those of Llama 2, Gemma and T5 have:
/// ids are those of SentencePiece. From tokenizer_config.json beside it come tokens that were added ("added_tokens_decoder",
/// "extra_ids" of T5) and which special tokens belong around a text ("add_bos_token", "add_eos_token"; without them the end
/// of Unigram models). Throws UserError naming the file when it is no such model, or of a kind whose ids `transformers`
/// arranges otherwise.
TokenizerJson tokenizer_of_sentencepiece(const std::filesystem::path& model);

}  // namespace sluice::text
