#include "models/config/config_quantisation.h"

#include <string>
#include <string_view>

#include "base/files/path_kind.h"
#include "base/text/strings.h"

namespace sluice::models {
namespace {

using Format = StoredQuantisation::Format;

// How codes were found, and with what they are multiplied elsewhere.
constexpr std::string_view kHarmless[] = {"damp_percent",
                                          "damp_auto_increment",
                                          "static_groups",
                                          "sym",
                                          "true_sequential",
                                          "model_name_or_path",
                                          "model_file_base_name",
                                          "meta",
                                          "dataset",
                                          "tokenizer",
                                          "batch_size",
                                          "cache_block_outputs",
                                          "block_name_to_quantize",
                                          "module_name_preceding_first_block",
                                          "modules_in_block_to_quantize",
                                          "modules_to_not_convert",
                                          "model_seqlen",
                                          "pad_token_id",
                                          "max_input_length",
                                          "use_cuda_fp16",
                                          "use_exllama",
                                          "disable_exllama",
                                          "exllama_config",
                                          "backend",
                                          "do_fuse",
                                          "fuse_max_seq_len",
                                          "modules_to_fuse",
                                          "pack_dtype"};

Format format_of(const ConfigObject& of, const std::string& method) {
  if (method == "awq") {
    const std::string version = of.text("version", "gemm");
    if (version != "gemm" && version != "GEMM")
      of.fail("version", "is " + sluice::quoted(version) + ": another layout than \"gemm\" is not read");
    of.refuse_unless("zero_point", true);
    return Format::kAwq;
  }
  for (const char* key : {"desc_act", "is_marlin_format", "lm_head"}) of.refuse_unless(key, false);
  const std::string format = of.text("checkpoint_format", "gptq");
  if (format == "gptq_v2") return Format::kGptqV2;
  if (format != "gptq") {
    of.fail("checkpoint_format", "is " + sluice::quoted(format) + ": another layout than \"gptq\" and \"gptq_v2\" is not read");
  }
  return Format::kGptq;
}

StoredQuantisation read(const ConfigObject& of, const std::string& method) {
  if (method != "gptq" && method != "awq") {
    of.fail("quant_method", "is " + sluice::quoted(method) + ": weights that it quantised are not read",
            "use the folder in float32, bfloat16 or float16, and quantization in [models.NAME]");
  }
  of.refuse_unless("bits", 4);
  StoredQuantisation stored{.format = format_of(of, method), .group = of.length("group_size", 128)};
  if (stored.group % QuantisationOptions::kGroupStep != 0)
    of.fail("group_size", "is " + std::to_string(stored.group) + ": only multiples of 32 are read");
  of.refuse_unknown(kHarmless, "use the folder in float32, bfloat16 or float16, and quantization in [models.NAME]");
  return stored;
}

}  // namespace

std::optional<StoredQuantisation> stored_quantisation(const ConfigObject& file) {
  if (file.find("quantization_config") == nullptr) return std::nullopt;
  const ConfigObject of = file.object("quantization_config");
  return read(of, of.text("quant_method", "gptq"));
}

std::optional<StoredQuantisation> stored_quantisation(const std::filesystem::path& folder) {
  const std::filesystem::path config = folder / "config.json", beside = folder / "quantize_config.json";
  const Json json = read_config_json(config);
  if (const auto stored = stored_quantisation(ConfigObject(config.string(), "", json))) return stored;
  if (!is_there(beside)) return std::nullopt;
  const Json own = read_config_json(beside);
  const ConfigObject of(beside.string(), "", own);
  return read(of, of.text("quant_method", "gptq"));
}

}  // namespace sluice::models
