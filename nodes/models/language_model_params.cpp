#include "nodes/models/language_model_params.h"

#include "models/folder/hub_cache.h"

namespace sluice::nodes {

engine::ParamSet<LanguageModelParams> language_model_params() {
  using P = LanguageModelParams;
  engine::ParamSet<P> set;
  set.param("checkpoint", &P::checkpoint)
      .found_by([](const std::string& text, const std::filesystem::path& path) { return models::model_folder(text, path); })
      .doc(
          "a Hugging Face folder: config.json, *.safetensors, tokenizer.json; or the id of a model of the Hub, with @REVISION if "
          "wanted, that lies in Hugging Face's cache");
  set.param("base_of", &P::base_of)
      .doc("instead of a checkpoint: a model with lora, whose weights without what was learned this one is");
  set.table("ema", &P::ema, ema_params())
      .doc("instead of a checkpoint: it is the moving average of the weights of a model that is trained");
  set.param("head", &P::head)
      .doc("\"value\" gives every token one number: a critic; \"policy+value\" does so beside the language model's head");
  set.param("init", &P::init).doc("\"random\" takes only config.json and the tokenizer of the folder");
  set.param("dtype", &P::dtype)
      .doc(
          "operands of products, embedded tokens, the KV cache, and matrices and embedding that are not trained; sums, norms, "
          "softmax and weights that are trained stay float32");
  set.param("device", &P::device).doc("where its weights are and what reads them computes: \"cpu\" or \"cuda:N\"");
  set.param("activation_checkpointing", &P::activation_checkpointing)
      .harmless()
      .doc(
          "\"layer\" keeps each layer's input alone for the backward and computes the rest again: a third more work, far less "
          "memory; \"auto\" does so where memory has no room for the rest");
  set.table("optimizer", &P::optimizer, optimizer_params()).doc("how the model is trained; without it, it is frozen");
  set.param("router_aux_loss", &P::router_aux_loss)
      .at_least(0)
      .doc(
          "of a mixture of experts: weight of a loss that spreads the tokens of each sample over the experts of a layer, added "
          "to whatever objective trains the model");
  set.param("freeze", &P::freeze).doc("patterns of the names of weights that are not trained");
  set.table("lora", &P::lora, lora_params()).doc("low-rank adapters that are trained instead of the weights");
  set.param("quantization", &P::quantization)
      .doc(
          "\"int8\" or \"int4\" hold the matrices of the layers of a model that is frozen, or trained by lora, as codes of so "
          "many bits; the model computes with their values in its dtype");
  set.param("quantization_group", &P::quantization_group)
      .between(32, 65536)
      .doc("so many inputs of an output share a scale, a multiple of 32; fewer are more exact");
  return set;
}

}  // namespace sluice::nodes
