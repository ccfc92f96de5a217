#include "models/config/config_keys.h"

#include "base/text/strings.h"
#include "models/config/config_quantisation.h"

namespace sluice::models {
namespace {

// Keys that do not change what the weights compute.
constexpr std::string_view kHarmlessKeys[] = {
    // Ids that the tokenizer or the sampling settings decide.
    "bos_token_id",
    "pad_token_id",
    "unk_token_id",
    "sep_token_id",
    "cls_token_id",
    "mask_token_id",
    "decoder_start_token_id",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "bad_words_ids",
    "suppress_tokens",
    "begin_suppress_tokens",
    // Dropout of GPT-2 and Phi-3: for pre-training; neither sampling nor training here draws it.
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "summary_first_dropout",
    "classifier_dropout",
    // How a model was trained, and by which program it was written.
    "transformers_version",
    "dtype",
    "torch_dtype",
    "use_bfloat16",
    "gradient_checkpointing",
    "use_cache",
    "name_or_path",
    "is_llama_config",
    "transformers.js_config",
    "unsloth_version",
    "unsloth_fixed",
    "tokenizer_class",
    "prefix",
    "n_ctx",
    "model_max_length",
    // Which kernels compute it.
    "attn_implementation",
    "use_flash_attn",
    "use_flash_attention_2",
    "cache_implementation",
    "chunk_size_feed_forward",
    "pretraining_tp",  // of these families transformers has no other products for it
    "torchscript",
    "tf_legacy_loss",
    "is_decoder",
    // What else is returned.
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "return_dict",
    "return_dict_in_generate",
    // Heads of other tasks.
    "num_labels",
    "id2label",
    "label2id",
    "problem_type",
    "finetuning_task",
    "task_specific_params",
    "summary_type",
    "summary_use_proj",
    "summary_activation",
    "summary_proj_to_labels",
    // Sampling settings that old checkpoints kept here.
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "diversity_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "num_beams",
    "num_beam_groups",
    "num_return_sequences",
    "max_length",
    "min_length",
    "max_new_tokens",
    "early_stopping",
    "exponential_decay_length_penalty",
    "remove_invalid_values",
};

// Phi-3 was published with a copy of the code that transformers has taken in since.
bool is_own_code(const Json& auto_map, const std::string& model_type) {
  if (!auto_map.is_object()) return false;
  for (const auto& [part, place] : auto_map.items()) {
    if (part == "AutoTokenizer") continue;  // tokenizer.json has the word
    const std::string text = place.is_string() ? place.get<std::string>() : "";
    if (!text.starts_with("configuration_" + model_type + ".") && !text.starts_with("modeling_" + model_type + ".")) return false;
  }
  return true;
}

}  // namespace

void refuse_unsupported(const ConfigObject& file, const std::string& model_type) {
  stored_quantisation(file);
  const Json* auto_map = file.find("auto_map");
  if (auto_map != nullptr && !is_own_code(*auto_map, model_type)) {
    file.fail("auto_map", "names Python code that computes this model, which is not run here",
              "if the code computes what a " + model_type + " of transformers does, remove the key");
  }
  for (const char* key : {"is_encoder_decoder", "add_cross_attention", "tie_encoder_decoder"}) file.refuse_unless(key, false);
  file.refuse_unless("attention_dropout", 0.0);
  file.refuse_unless("is_causal", true);  // false: tokens see those after them, as embedding models are tuned
  for (const char* key : {"full_attn_mod", "interpolate_factor"}) file.refuse_unless(key, 1);
}

void refuse_unknown_keys(const ConfigObject& file) {
  file.refuse_unknown(kHarmlessKeys,
                      "remove the key if the model computes the same without it; else this model is not supported");
}

}  // namespace sluice::models
