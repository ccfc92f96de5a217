#include <algorithm>

#include "base/text/strings.h"
#include "nodes/columns/columns.h"
#include "nodes/models/special_in_text.h"
#include "nodes/rollout/generate.h"
#include "nodes/rollout/generate_options.h"
#include "nodes/rollout/rollout_metrics.h"

// What `generate` says of itself.
namespace sluice::nodes {
namespace {

// Bytes of text that one sampled token is taken to decode to, for the plan: an estimate, since the true bound, the longest entry
// of a vocabulary, is often 100 spaces and more. No answer of GSM8K has more than 5 in the vocabularies of GPT-2, Qwen2 and
// Falcon.
constexpr int64_t kTextBytesOfToken = 8;

void find_greedy_contradictions(const GenerateParams& params, engine::Findings& findings) {
  if (params.temperature.lowest() > 0) return;
  if (params.temperature.changes()) {
    findings.error("temperature", "a temperature of 0 takes the likeliest token, and so cannot be on the way of a schedule",
                   "from and to above 0, without warmup");
    return;
  }
  const auto no_effect = [&](const char* key) {
    findings.without_effect(key, std::string(key) + " has no effect at temperature 0, which takes the likeliest token",
                            "remove " + std::string(key) + ", or set a temperature");
  };
  if (params.top_k != 0) no_effect("top_k");
  if (params.top_p != 1) no_effect("top_p");
  if (params.min_p != 0) no_effect("min_p");
  if (params.samples_per_prompt > 1) {
    findings.warning("samples_per_prompt", "at temperature 0 all samples of a prompt are alike",
                     "samples_per_prompt = 1, or a temperature");
  }
  if (params.baseline) {
    findings.warning("baseline", "at temperature 0 the baseline is the response itself", "baseline = false, or a temperature");
  }
}

void find_turn_contradictions(const GenerateParams& params, engine::Findings& findings) {
  const auto refuse_empty = [&](const char* key, const std::vector<std::string>& texts) {
    if (std::ranges::find(texts, "") != texts.end())
      findings.error(key, std::string(key) + " has an empty string, which every text ends with", "remove it");
  };
  refuse_empty("stop", params.stop);
  refuse_empty("turn_ends", params.turn_ends);
  if (!params.has_environment()) {
    const char* help = "remove it, or set an environment";
    if (!params.turn_ends.empty()) findings.without_effect("turn_ends", "turn_ends has no effect without an environment", help);
    if (params.max_turns != 0) findings.without_effect("max_turns", "max_turns has no effect without an environment", help);
    return;
  }
  const std::vector<std::string> ends = all_turn_ends(params);
  if (params.ignore_end_of_sequence && ends.empty())
    findings.error("environment", "the environment is never asked: with ignore_end_of_sequence nothing ends a turn",
                   "turn_ends = [\"...\"], or ignore_end_of_sequence = false");
  for (const std::string& stop : params.stop) {
    for (const std::string& end : ends) {
      if (stop.empty() || end.find(stop) == std::string::npos) continue;
      findings.error("stop", sluice::quoted(stop) + " ends the sample before " + sluice::quoted(end) + " could end a turn",
                     "take it out of stop");
    }
  }
}

void find_speculation_contradictions(const GenerateParams& params, engine::Findings& findings) {
  const bool guesses = params.speculation != Speculation::kNone;
  if (!guesses && findings.changed("speculation_tokens"))
    findings.without_effect("speculation_tokens", "speculation_tokens has no effect where nothing is guessed",
                            "speculation = \"auto\", or remove speculation_tokens");
  if (params.speculation == Speculation::kDraft && !params.has_draft())
    findings.error("speculation", "speculation = \"draft\" needs a model that guesses",
                   "draft = \"NAME\", a frozen model of the pipeline with the same vocabulary; or speculation = \"ngrams\"");
  if (!params.has_draft()) return;
  if (!guesses || params.speculation == Speculation::kNgrams)
    findings.without_effect(
        "draft", "draft has no effect " + std::string(guesses ? "where texts guess for themselves" : "where nothing is guessed"),
        "speculation = \"draft\", or \"auto\": while one sample runs alone; or remove draft");
  if (params.draft == params.model)
    findings.error("draft", "a model cannot guess for itself: it would take as long as it saves",
                   "name another one, or remove draft");
}

}  // namespace

void Generate::describe(engine::Contract<GenerateParams>& c) {
  using P = GenerateParams;
  c.type("generate", "samples responses from a model");
  c.model("model", &P::model, engine::ModelUse::kSamples, "language_model").required().doc("whose published weights are sampled");
  c.param("samples_per_prompt", &P::samples_per_prompt).between(1, 65536).doc("responses for each prompt: a group");
  c.param("max_new_tokens", &P::max_new_tokens).required().between(1, 1 << 24).unit("tokens").doc("a response is cut there");
  c.param("max_prompt_tokens", &P::max_prompt_tokens).between(1, 1 << 24).unit("tokens").doc("the longest prompt");
  c.param("prompt_too_long", &P::prompt_too_long)
      .doc("a longer prompt is an error, or its group is dropped before it takes credit, and counted");
  c.param("temperature", &P::temperature)
      .at_least(0)
      .recorded_as("rollout/temperature")
      .doc("divides the logits; 0 takes the likeliest token");
  c.param("top_k", &P::top_k).at_least(0).doc("keeps the k likeliest tokens; 0 keeps all");
  c.param("top_p", &P::top_p).between(0, 1).above(0).doc("keeps the likeliest tokens with this share; 1 keeps all");
  c.param("min_p", &P::min_p).between(0, 1).doc("keeps tokens at least so many times as likely as the likeliest; 0 keeps all");
  c.param("repetition_penalty", &P::repetition_penalty)
      .above(0)
      .doc("divides positive logits of tokens that the prompt or the response has, and multiplies negative ones");
  c.param("presence_penalty", &P::presence_penalty).between(-2, 2).doc("taken off the logits of tokens that the response has");
  c.param("frequency_penalty", &P::frequency_penalty)
      .between(-2, 2)
      .doc("taken off the logits of tokens of the response, for each time that they occur in it");
  c.param("max_running_samples", &P::max_running_samples)
      .between(1, 65536)
      .harmless()
      .doc("decoded side by side; the others wait");
  c.param("ignore_end_of_sequence", &P::ignore_end_of_sequence).doc("every sample runs to max_new_tokens");
  c.param("add_special_tokens", &P::add_special_tokens)
      .doc("puts the tokenizer's special tokens around each prompt; unset: unless a chat template wrote it, with its own");
  c.param("stop", &P::stop).doc("strings that end a response: it ends with the token that completes one");
  c.param("token_versions", &P::token_versions).doc("writes which version of the weights sampled each token");
  c.param("routes", &P::routes).doc("of a mixture of experts: writes which experts each token went through, for replay_routes");
  c.param("baseline", &P::baseline).doc("the likeliest response of each prompt as well, as baseline_response");
  c.param("environment", &P::environment).doc("replies when a turn of the policy ends; none: a response is one turn");
  c.param("turn_ends", &P::turn_ends).doc("strings that end a turn, beside an end of sequence and what the environment says");
  c.param("max_turns", &P::max_turns)
      .at_least(0)
      .doc("the policy's turns in a sample; 0: as many as max_new_tokens has room for");
  c.param("speculation", &P::speculation)
      .harmless()
      .doc(
          "guesses the next tokens of a sample, to compute several in one step: the same tokens in less time; ngrams: from its "
          "own text, where that repeats itself; draft: by the model that draft names; auto: by either, while one sample runs "
          "alone");
  c.param("speculation_tokens", &P::speculation_tokens)
      .between(1, 64)
      .harmless()
      .unit("tokens")
      .doc("guessed of a sample in a step, at most");
  c.model("draft", &P::draft, engine::ModelUse::kSamples, "language_model")
      .harmless()
      .doc("a frozen model with the vocabulary of the other, smaller or quantised, that guesses; empty: the text of each sample");
  c.reads(columns::kPrompt);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    if (params.add_special_tokens) {
      needs.must_agree["add_special_tokens"] = *params.add_special_tokens ? 1 : 0;
    } else {
      needs.choices.push_back({{columns::kMessages.spec()}, /*required=*/false});
    }
  });
  c.writes(columns::kTokens, columns::kRolloutLogprobs, columns::kResponse, columns::kFinish);
  c.writes_if([](const P& params) { return params.token_versions; }, columns::kTokenVersions);
  c.writes_if([](const P& params) { return params.routes; }, columns::kRoutes);
  c.writes_if([](const P& params) { return params.baseline; }, columns::kBaselineResponse);
  c.writes_if([](const P& params) { return params.has_environment(); }, columns::kEnvironmentScore);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    if (params.routes) needs.routes_by = "routes", needs.routes_column = columns::kRoutes.spec().name;
    if (params.has_environment()) needs.choices.push_back({{columns::kLabel.spec()}, /*required=*/false});
    needs.samples_per_group = params.samples_per_prompt;
    needs.side_samples = params.responses_per_prompt() - params.samples_per_prompt;
    needs.least_sample_tokens = 1 + params.max_new_tokens;
    needs.on_demand_tokens = 1 + std::min(kCreditRoom, params.max_new_tokens);
    needs.shared_prompt_tokens = params.max_prompt_tokens;
    needs.prompt_limit = engine::PromptLimit{.tokens = params.max_prompt_tokens,
                                             .leaves_out_longer = params.prompt_too_long == TooLong::kDrop,
                                             .add_special = params.add_special_tokens};
    needs.worst_sample_tokens = params.max_prompt_tokens + params.max_new_tokens;
    needs.step_tokens = step_tokens(params);
    needs.running_samples = params.max_running_samples;
    needs.string_bytes[columns::kResponse.spec().name] = params.max_new_tokens * kTextBytesOfToken;
    needs.string_bytes[columns::kBaselineResponse.spec().name] = params.max_new_tokens * kTextBytesOfToken;
    // Greedy: log-probabilities of temperature 1.
    needs.must_agree["temperature"] = params.temperature.is(0) ? engine::ScheduledNumber(1.0) : params.temperature;
  });
  c.check(find_greedy_contradictions);
  c.check(find_turn_contradictions);
  c.check(find_speculation_contradictions);
  c.data([](const P& params, engine::DataLook& look) {
    refuse_special_in_text(params.model, "stop", params.stop, look);
    refuse_special_in_text(params.model, "turn_ends", params.turn_ends, look);
  });
  RolloutMetrics::describe(c);
}

}  // namespace sluice::nodes
