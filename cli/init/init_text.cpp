#include "cli/init/init_text.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/text/printable.h"
#include "base/text/shell_word.h"
#include "base/text/strings.h"
#include "base/text/utf8.h"
#include "engine/plan/bind_settings.h"

namespace sluice::cli {
namespace {

/// The keys of one table, on one line.
class Keys {
 public:
  Keys& add(const std::string& key, const std::string& toml) { return parts_.push_back(key + " = " + toml), *this; }
  Keys& text(const std::string& key, const std::string& value) { return add(key, sluice::quoted(value)); }
  Keys& number(const std::string& key, int64_t value) { return add(key, std::to_string(value)); }
  Keys& more(const std::string& keys) { return parts_.back() += keys, *this; }

  std::string line(const std::string& name) const { return name + " = " + table() + "\n"; }
  std::string table() const { return "{ " + join(parts_, ", ") + " }"; }

 private:
  std::vector<std::string> parts_;
};

std::string names_text(const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(sluice::quoted(name));
  return "[" + join(texts, ", ") + "]";
}

Keys node(const std::string& type, const std::string& inputs = {}) {
  Keys keys;
  keys.text("type", type);
  if (!inputs.empty()) keys.add("inputs", "[" + inputs + "]");
  return keys;
}

// As a person writes it: 5e-5, not 4.9999999999999996e-5.
std::string rate_text(double rate) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g", rate);
  return real_text(std::strtod(text.data(), nullptr));
}

const char* title_of(InitKind kind) {
  switch (kind) {
    case InitKind::kGrpo:
      return "Group relative policy optimisation (GRPO): each answer is compared with the others to its prompt";
    case InitKind::kPpo:
      return "Proximal policy optimisation (PPO) with a critic";
    case InitKind::kSft:
      return "Supervised fine-tuning (SFT): the model learns to say what the examples say";
    case InitKind::kDpo:
      return "Direct preference optimisation (DPO): the better completion of each pair becomes likelier than the worse";
    case InitKind::kReward:
      return "A reward model from pairs: checkpoint/reward is a scorer, type = \"reward_model\" takes it";
  }
  return "";
}

/// Writes one pipeline.
class InitWriter {
 public:
  InitWriter(const InitPipeline& pipeline, const std::string& file) : p_(pipeline), file_(file) {}

  std::string text() const { return head() + "\n" + settings() + "\n[models]\n" + models() + "\n[nodes]\n" + nodes(); }

 private:
  std::string head() const {
    return std::string("# ") + title_of(p_.kind) + ".\n#\n#   rlhf-run validate " + printable(shell_word(file_)) +
           " --data\n#   " + printable(command_to_run(file_)) +
           "\n#\n# What a key means, and all others of a type: rlhf-run describe TYPE\n";
  }

  // A pipeline is called after its file, unless that has a name which no run folder can have.
  Keys named() const {
    Keys keys;
    std::string name = std::filesystem::path(file_).stem().string();
    if (engine::is_pipeline_name(name)) return keys;
    std::erase_if(name, is_continuation);
    for (char& c : name)
      if (!engine::is_pipeline_name("a" + std::string(1, c))) c = '-';
    keys.text("name", engine::is_pipeline_name(name) ? name : "pipeline");
    return keys;
  }

  std::string settings() const {
    std::string text = named().number("iterations", p_.iterations).line("pipeline") +
                       "# So many tokens are under way at most: memory follows it.\n" +
                       Keys().number("tokens_in_flight", p_.tokens_in_flight).text("micro_batch_tokens", "auto").line("budget");
    if (p_.memory_gib > 0) text += Keys().add("memory_gib", real_text(p_.memory_gib)).line("runtime");
    return text + Keys().number("every_minutes", 30).line("checkpoint");
  }

  // A model that begins as the folder is.
  Keys from_folder() const {
    Keys keys;
    keys.text("checkpoint", p_.model);
    if (p_.bfloat16) keys.text("dtype", "bfloat16");
    if (!p_.device.empty()) keys.text("device", p_.device);
    return keys;
  }

  std::string trained(const std::string& name, double rate, const std::string& head = {}) const {
    Keys keys = from_folder();
    if (!head.empty()) keys.text("head", head);
    if (p_.lora) keys.add("lora", Keys().number("rank", 16).table());
    keys.add("optimizer", Keys().add("learning_rate", rate_text(rate)).add("clip_grad_norm", "1.0").table());
    return keys.line(name);
  }

  std::string reference() const {
    if (p_.lora)
      return "# What the actor was before: it is held close to that.\n" + Keys().text("base_of", "actor").line("reference");
    return "# What the actor was before: it is held close to that.\n" + from_folder().line("reference");
  }

  std::string models() const {
    switch (p_.kind) {
      case InitKind::kGrpo:
      case InitKind::kDpo:
        return trained("actor", p_.learning_rate) + reference();
      case InitKind::kPpo:
        return trained("actor", p_.learning_rate) + reference() + trained("critic", p_.critic_learning_rate, "value");
      case InitKind::kSft:
        return trained("policy", p_.learning_rate);
      case InitKind::kReward:
        return trained("reward", p_.learning_rate, "value");
    }
    return {};
  }

  std::string nodes() const {
    switch (p_.kind) {
      case InitKind::kGrpo:
        return sampling() + grpo();
      case InitKind::kPpo:
        return sampling() + ppo();
      case InitKind::kSft:
        return examples() + node("train_sft", "\"examples\"").text("model", "policy").line("train");
      case InitKind::kDpo:
        return pairs("actor") + node("logprobs", "\"pairs\"").text("model", "reference").line("reference") +
               "# beta: how close it stays to the reference.\n" +
               node("train_dpo", "\"reference\"")
                   .text("model", "actor")
                   .add("objective", "{ type = \"dpo\", beta = 0.1 }")
                   .line("train");
      case InitKind::kReward:
        return pairs("reward") + node("train_reward", "\"pairs\"").text("model", "reward").line("train");
    }
    return {};
  }

  // What a row is made of. "prompt" is what prompt_field is without a word.
  void add_prompt(Keys& keys) const {
    const InitFields& fields = p_.fields;
    if (!fields.messages.empty())
      keys.text("messages_field", fields.messages);
    else if (fields.prompt.empty())
      keys.text("prompt_field", "");
    else if (fields.prompt.size() > 1)
      keys.add("prompt_fields", names_text(fields.prompt));
    else if (fields.prompt.front() != "prompt")
      keys.text("prompt_field", fields.prompt.front());
    if (p_.chats || p_.passes_over_template) keys.add("chat", p_.chats ? "true" : "false");
  }

  Keys source(const std::string& type, const std::string& model) const {
    Keys keys = node(type);
    keys.text("path", p_.data);
    add_prompt(keys);
    return keys.text("model", model).text("too_long", "drop").number("groups_per_iteration", p_.groups);
  }

  std::string sampling() const {
    Keys prompts = source("jsonl_prompts", "actor");
    prompts.text("label_field", p_.fields.answer).number("max_prompt_tokens", p_.max_prompt_tokens);
    if (p_.chats && !p_.scorer.suffix.empty()) prompts.text("suffix", p_.scorer.suffix);
    return "# Prompts that are longer than max_prompt_tokens are left out; the label is what a response is compared with.\n" +
           prompts.line("prompts") +
           node("generate", "\"prompts\"")
               .text("model", "actor")
               .number("samples_per_prompt", p_.samples)
               .number("max_prompt_tokens", p_.max_prompt_tokens)
               .number("max_new_tokens", p_.max_new_tokens)
               .line("generate") +
           "# Why this scorer: " + p_.scorer.why + ".\n" +
           node(p_.scorer.type, "\"generate\"").more(p_.scorer.more).line("score") +
           node("logprobs", "\"generate\"").text("model", "reference").line("reference");
  }

  static std::string grpo() {
    return node("grpo", "\"score\"").line("advantages") + "# kl_coefficient: how close it stays to the reference.\n" +
           node("train_ppo", "\"advantages\", \"reference\"")
               .text("actor", "actor")
               .add("objective", "{ type = \"ppo_clip\", kl_coefficient = 0.01, kl_estimator = \"k3\" }")
               .line("train") +
           sync();
  }

  static std::string ppo() {
    return node("values", "\"generate\"").text("model", "critic").line("values") +
           "# kl_coefficient: how close it stays to the reference.\n" +
           node("token_rewards", "\"score\", \"reference\"").add("kl_coefficient", "0.01").line("rewards") +
           node("gae", "\"rewards\", \"values\"").add("lambda", "0.95").line("advantages") +
           node("train_ppo", "\"advantages\"").text("actor", "actor").text("critic", "critic").line("train") + sync();
  }

  static std::string sync() { return node("sync_weights", "\"train\"").text("model", "actor").line("sync"); }

  std::string examples() const {
    Keys keys = source("jsonl_examples", "policy");
    if (!p_.fields.answer.empty()) keys.text("completion_field", p_.fields.answer);
    keys.number("max_tokens", p_.max_tokens);
    return "# Examples that are longer than max_tokens are left out.\n" + keys.line("examples");
  }

  std::string pairs(const std::string& model) const {
    Keys keys = source("preference_pairs", model);
    keys.text("chosen_field", p_.fields.chosen).text("rejected_field", p_.fields.rejected).number("max_tokens", p_.max_tokens);
    return "# Pairs that are longer than max_tokens are left out.\n" + keys.line("pairs");
  }

  const InitPipeline& p_;
  const std::string& file_;
};

}  // namespace

std::string command_to_run(const std::string& file) {
  return (file.ends_with(".toml") ? "rlhf-run " : "rlhf-run run ") + shell_word(file);
}

std::string init_text(const InitPipeline& pipeline, const std::string& file) { return InitWriter(pipeline, file).text(); }

}  // namespace sluice::cli
