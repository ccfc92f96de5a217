#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/params/param_values.h"
#include "engine/contract/params/scheduled_number.h"
#include "nodes/prompts/too_long.h"
#include "nodes/rollout/environments/environment.h"

namespace sluice::nodes {

/// Whether tokens are guessed before they are sampled.
enum class Speculation {
  kNone,
  kNgrams,  // from its text, whatever runs beside
  kDraft,   // by another model, likewise
  kAuto,    // by either, while one sample runs alone
};

constexpr auto enum_names(Speculation) {
  return std::array{std::pair{Speculation::kNone, "none"}, std::pair{Speculation::kNgrams, "ngrams"},
                    std::pair{Speculation::kDraft, "draft"}, std::pair{Speculation::kAuto, "auto"}};
}

/// Samples responses from the published weights of a model, many at a time, one decoded token a step for each.
///
///   [nodes.generate]
///   type = "generate"
///   inputs = ["prompts"]
///   model = "actor"
///   samples_per_prompt = 4
///   max_new_tokens = 256
///   max_prompt_tokens = 512
///   prompt_too_long = "refuse"        # or "drop": the group is left out of its iteration, and counted
///   temperature = 1.0                 # 0: the likeliest token; or a schedule, of the iterations that are sampled for
///   top_k = 0                         # 0: all
///   top_p = 1.0
///   min_p = 0.0                       # keeps tokens at least so many times as likely as the likeliest; 0: all
///   repetition_penalty = 1.0          # on tokens of the prompt and the response; 1: none
///   presence_penalty = 0.0            # on sampled tokens, once each
///   frequency_penalty = 0.0           # on sampled tokens, each time
///   max_running_samples = 256         # decoded side by side; the others wait
///   ignore_end_of_sequence = false    # true: every sample runs to max_new_tokens
///   add_special_tokens = true         # false: the prompts hold theirs; default: false for those that a chat template wrote
///   stop = ["\n\n"]                   # a response ends with the token that completes one of these
///   token_versions = false            # true: writes which version of the weights sampled each token
///   routes = false                    # true, of a mixture of experts: writes which experts each token went through
///   baseline = false                  # true: the likeliest response of each prompt as well (for ReMax)
///   environment = "none"              # or { type = "calculator", ... }: who replies when a turn of the policy ends
///   turn_ends = ["</call>"]           # what ends a turn, beside an end of sequence and what the environment says
///   max_turns = 0                     # the policy's turns in a sample; 0: as many as max_new_tokens has room for
///   speculation = "none"              # "ngrams", "draft", "auto": guesses what comes next, which changes the time and nothing else
///   speculation_tokens = 8            # guessed of a sample in a step, at most
///   draft = ""                        # a frozen model of the same vocabulary that guesses; empty: texts say what comes next
///
/// Reads prompt; writes tokens[T] (prompt and response), rollout_logprobs[A], response[S] and finish[S] (see Finish). With
/// add_special_tokens the prompt gets the special tokens that the tokenizer puts around a text. A response that ends has its
/// end-of-sequence token among the actions, not in the text; a stop string stays in both. rollout_logprobs are those of
/// softmax(logits / temperature) over the whole vocabulary, whatever penalties change and top_k, top_p and min_p cut off; for
/// temperature 0 those of temperature 1. The likeliest response of `baseline` knows no penalties.
///
/// With `baseline` one more response to each prompt is decoded beside the others, the likeliest token each time; its text goes to
/// baseline_response[G], its tokens are dropped (Li et al. 2023, "ReMax", algorithm 1). A group takes credit for it until it
/// ends.
///
/// With `token_versions` token_versions[A] says with which version of the weights each action was sampled: the iteration's,
/// unless [schedule] update = "immediately" lets samples that run go on with newer ones. rollout_logprobs are of those weights,
/// so that what takes ratios from them is right for each token by itself.
///
/// With `routes` routes[S] says where the routers of a mixture sent each token but the last, so that who computes with the sample
/// can send it there again (replay_routes; models/layers/feed_forward/routes.h).
///
/// With an environment a response is several turns of the policy with replies between them
/// (nodes/rollout/environments/environment.h, docs/multi-turn.md). A reply's tokens go into the context after the turn and are
/// no actions. max_new_tokens bounds turns and replies together; a reply that leaves no room for an action is cut there, and the
/// sample has finished by length. The sum of its rewards goes to environment_score[S]. Reads label, if there is one.
///
/// With `speculation` the next tokens of a sample are guessed and computed beside the one that is due (speculative sampling,
/// Leviathan et al. 2023, arXiv 2211.17192): from its own text (models/sample/drafts.h), or by the smaller model `draft`, which
/// draws with the same numbers and settings (models/sample/draft_model.h). A token is drawn as it would be without, with the same
/// number of the sample's stream, so on the CPU all bits are the same; a guess that is right saves a step. "auto" guesses while
/// one sample runs alone, the last of those that are under way: its steps take as long as reading the weights.
///
/// Where credit is taken on demand ([budget] admission), a sample that lacks it is preempted: it keeps its text and reads it
/// again when its turn comes. Groups are handed on in the order of their index then.
///
/// Its KV cache is a pool of the size that the plan predicts, enough for every sample that the token budget admits and a place is
/// free for.
/// A sample's text depends on (seed, iteration, group, sample), its prompt and the weights, not on what runs beside it.
struct GenerateParams {
  std::string model;
  int64_t samples_per_prompt = 1;
  int64_t max_new_tokens = 0;
  int64_t max_prompt_tokens = 512;
  TooLong prompt_too_long = TooLong::kRefuse;
  engine::ScheduledNumber temperature = 1.0;
  int64_t top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  int64_t max_running_samples = 256;
  bool ignore_end_of_sequence = false;
  std::optional<bool> add_special_tokens;
  std::vector<std::string> stop;
  bool token_versions = false;
  bool routes = false;
  bool baseline = false;
  engine::Component<Environment> environment{.type = "none"};
  std::vector<std::string> turn_ends;
  int64_t max_turns = 0;
  Speculation speculation = Speculation::kNone;
  int64_t speculation_tokens = 8;
  std::string draft;

  bool has_draft() const { return !draft.empty(); }
  bool has_environment() const { return environment.type != "none"; }
  int64_t responses_per_prompt() const { return samples_per_prompt + (baseline ? 1 : 0); }
};

}  // namespace sluice::nodes
