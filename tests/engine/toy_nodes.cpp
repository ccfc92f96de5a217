#include "tests/engine/toy_nodes.h"

#include <array>
#include <stdexcept>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::engine::testing {
namespace {

constexpr Column<std::string> kPrompt{"prompt", Extent::kGroup};
constexpr Column<std::string> kLabel{"label", Extent::kGroup};
constexpr Column<int64_t> kTokens{"tokens", Extent::kToken};
constexpr Column<float> kRolloutLogprobs{"rollout_logprobs", Extent::kAction};
constexpr Column<std::string> kResponse{"response", Extent::kSample};
constexpr Column<float> kScore{"score", Extent::kSample};
constexpr Column<float> kScoreOfGroup{"score", Extent::kGroup};
constexpr Column<float> kReferenceLogprobs{"reference_logprobs", Extent::kAction};
constexpr Column<float> kValues{"values", Extent::kAction};
constexpr Column<float> kTokenRewards{"token_rewards", Extent::kAction};
constexpr Column<float> kAdvantages{"advantages", Extent::kAction};
constexpr Column<float> kReturns{"returns", Extent::kAction};

enum class Whitening { kNone, kIteration };
constexpr std::array<std::pair<Whitening, const char*>, 2> enum_names(Whitening) {
  return {{{Whitening::kNone, "none"}, {Whitening::kIteration, "iteration"}}};
}

class Idle : public Node {
 public:
  void process(MicroBatch&) override {}
};

struct PromptsParams {
  int64_t groups_per_iteration = 32;
};

class Prompts final : public Source {
 public:
  static void describe(Contract<PromptsParams>& c) {
    c.type("prompts", "prompts with their reference answers");
    c.param("groups_per_iteration", &PromptsParams::groups_per_iteration)
        .at_least(1)
        .unit("groups")
        .doc("prompts of an iteration");
    c.writes(kPrompt, kLabel);
    c.needs([](const PromptsParams& p, NodeNeeds& needs) { needs.groups_per_iteration = p.groups_per_iteration; });
  }
  explicit Prompts(const PromptsParams&) {}
  bool next_group(Group&) override { return false; }
};

struct SamplesParams {
  int64_t groups_per_iteration = 4;
  int64_t samples_per_group = 2;
};

class Samples final : public Source {
 public:
  static void describe(Contract<SamplesParams>& c) {
    c.type("samples", "finished samples, eight tokens each");
    c.param("groups_per_iteration", &SamplesParams::groups_per_iteration).at_least(1).doc("groups of an iteration");
    c.param("samples_per_group", &SamplesParams::samples_per_group).at_least(1).doc("samples of a group");
    c.writes(kTokens, kResponse, kLabel);
    c.needs([](const SamplesParams& p, NodeNeeds& needs) {
      needs.groups_per_iteration = p.groups_per_iteration;
      needs.samples_per_group = p.samples_per_group;
      needs.worst_sample_tokens = 8;
    });
  }
  explicit Samples(const SamplesParams&) {}
  bool next_group(Group&) override { return false; }
};

struct GenerateParams {
  std::string model;
  int64_t samples_per_prompt = 4;
  int64_t max_prompt_tokens = 32;
  int64_t max_new_tokens = 0;
  double temperature = 1.0;
  std::vector<std::string> stop;
};

class Generate final : public Rollout {
 public:
  static void describe(Contract<GenerateParams>& c) {
    c.type("generate", "samples responses to prompts");
    c.model("model", &GenerateParams::model, ModelUse::kSamples, "language_model").required().doc("the policy to sample from");
    c.param("samples_per_prompt", &GenerateParams::samples_per_prompt).at_least(1).unit("samples").doc("size of a group");
    c.param("max_prompt_tokens", &GenerateParams::max_prompt_tokens).at_least(1).unit("tokens").doc("longer prompts are refused");
    c.param("max_new_tokens", &GenerateParams::max_new_tokens).required().at_least(1).unit("tokens").doc("longest response");
    c.param("temperature", &GenerateParams::temperature).above(0).doc("1 samples from the policy itself");
    c.param("stop", &GenerateParams::stop).doc("texts that end a response");
    c.reads(kPrompt);
    c.writes(kTokens, kRolloutLogprobs, kResponse);
    c.needs([](const GenerateParams& p, NodeNeeds& needs) {
      needs.samples_per_group = p.samples_per_prompt;
      needs.worst_sample_tokens = p.max_prompt_tokens + p.max_new_tokens;
      needs.must_agree["temperature"] = p.temperature;
    });
    c.metric("toy/NODE/response_tokens", Metric::kMean, "mean length of a response");
  }
  explicit Generate(const GenerateParams&) {}
  int64_t worst_tokens(const Group&) const override { return 0; }
  void start(Group) override {}
  void step(Sink&) override {}
  bool idle() const override { return true; }
};

struct NoParams {};

class ExactMatch final : public Idle {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("exact_match", "1 if the response is the label, else 0");
    c.reads(kResponse, kLabel);
    c.writes(kScore);
  }
  explicit ExactMatch(const NoParams&) {}
};

class GroupScore final : public Idle {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("group_score", "reads one score a group");
    c.reads(kScoreOfGroup);
    c.metric("toy/NODE/score", Metric::kMean, "mean score");
  }
  explicit GroupScore(const NoParams&) {}
};

struct LogprobsParams {
  std::string model;
  std::string writes = "reference_logprobs";
  double temperature = 1.0;
};

class Logprobs final : public Idle {
 public:
  static void describe(Contract<LogprobsParams>& c) {
    c.type("logprobs", "log-probabilities of the sampled tokens");
    c.model("model", &LogprobsParams::model, ModelUse::kReads, "language_model").required().doc("the model to ask");
    c.param("writes", &LogprobsParams::writes).doc("name of the column");
    c.param("temperature", &LogprobsParams::temperature).above(0).doc("the temperature that sampled them");
    c.reads(kTokens);
    c.writes_named(&LogprobsParams::writes, DType::kFloat32, Extent::kAction);
    c.needs([](const LogprobsParams& p, NodeNeeds& needs) { needs.must_agree["temperature"] = p.temperature; });
  }
  explicit Logprobs(const LogprobsParams&) {}
};

struct ValuesParams {
  std::string model;
};

class Values final : public Idle {
 public:
  static void describe(Contract<ValuesParams>& c) {
    c.type("values", "the critic's estimate at each action");
    c.model("model", &ValuesParams::model, ModelUse::kReads, "value").required().doc("the critic");
    c.reads(kTokens);
    c.writes(kValues);
  }
  explicit Values(const ValuesParams&) {}
};

struct RewardsParams {
  double kl_coefficient = 0.02;
};

class TokenRewards final : public Idle {
 public:
  static void describe(Contract<RewardsParams>& c) {
    c.type("token_rewards", "score on the last action, minus a KL penalty on every action");
    c.param("kl_coefficient", &RewardsParams::kl_coefficient).at_least(0).doc("weight of the penalty");
    c.reads(kScore, kReferenceLogprobs, kRolloutLogprobs);
    c.writes(kTokenRewards);
  }
  explicit TokenRewards(const RewardsParams&) {}
};

struct GaeParams {
  double discount = 1.0;
  double lambda = 0.95;
  Whitening whiten = Whitening::kNone;
};

class Gae final : public Idle {
 public:
  static void describe(Contract<GaeParams>& c) {
    c.type("gae", "generalised advantage estimation");
    c.param("discount", &GaeParams::discount).between(0, 1).doc("weight of a reward one action later");
    c.param("lambda", &GaeParams::lambda).between(0, 1).doc("0 trusts the critic, 1 trusts the sampled return");
    c.param("whiten", &GaeParams::whiten).doc("zero mean, unit variance over the iteration's actions");
    c.reads(kTokenRewards, kValues);
    c.writes(kAdvantages, kReturns);
    c.iteration_scope_if([](const GaeParams& p) { return p.whiten == Whitening::kIteration; }, "whiten = \"iteration\"");
  }
  explicit Gae(const GaeParams&) {}
};

struct GrpoParams {
  bool divide_by_std = true;
};

class Grpo final : public Idle {
 public:
  static void describe(Contract<GrpoParams>& c) {
    c.type("grpo", "advantages relative to the group");
    c.param("divide_by_std", &GrpoParams::divide_by_std).doc("divide by the standard deviation of the group's scores");
    c.reads(kScore);
    c.writes(kAdvantages);
  }
  explicit Grpo(const GrpoParams&) {}
};

class Objective {
 public:
  static constexpr const char* kComponent = "objective";
  virtual ~Objective() = default;
};

struct ClipParams {
  double clip = 0.2;
};

class PpoClip final : public Objective {
 public:
  static void describe(Contract<ClipParams>& c) {
    c.type("ppo_clip", "the clipped surrogate of PPO");
    c.param("clip", &ClipParams::clip).above(0).doc("how far the ratio may go from 1");
  }
  explicit PpoClip(const ClipParams&) {}
};

struct TrainParams {
  std::string actor;
  std::string critic;
  Component<Objective> objective{.type = "ppo_clip", .object = nullptr, .parts = {}};
  int64_t epochs = 1;
};

class TrainPpo final : public Idle {
 public:
  static void describe(Contract<TrainParams>& c) {
    c.type("train_ppo", "one optimizer step an iteration on actor and critic");
    c.model("actor", &TrainParams::actor, ModelUse::kUpdates, "language_model").required().doc("the policy");
    c.model("critic", &TrainParams::critic, ModelUse::kUpdates, "value").doc("the critic; none with advantages of a group");
    c.param("objective", &TrainParams::objective).doc("the loss of the actor");
    c.param("epochs", &TrainParams::epochs).at_least(1).doc("passes over the iteration");
    c.reads(kTokens, kRolloutLogprobs, kAdvantages);
    c.reads_if([](const TrainParams& p) { return !p.critic.empty(); }, kReturns, kValues);
    c.iteration_scope_if([](const TrainParams& p) { return p.epochs > 1; }, "epochs > 1");
    c.check([](const TrainParams& p, Findings& findings) {
      if (p.epochs > 100) findings.warning("epochs", "more than 100 epochs forget where they came from", "epochs = 4 is common");
    });
  }
  explicit TrainPpo(const TrainParams& params) { SLUICE_CHECK(params.objective.object != nullptr, "no objective"); }
};

struct SyncParams {
  std::string model;
};

class SyncWeights final : public Idle {
 public:
  static void describe(Contract<SyncParams>& c) {
    c.type("sync_weights", "publishes the trained weights as the next version");
    c.model("model", &SyncParams::model, ModelUse::kPublishes).required().doc("the trained model");
  }
  explicit SyncWeights(const SyncParams&) {}
};

struct OptimizerParams {
  double learning_rate = 1e-6;
};

struct ModelParams {
  std::filesystem::path checkpoint;
  std::string head = "language_model";
  int64_t max_positions = 64;
  int64_t max_sampled_positions = 0;
  bool may_recompute = false;
  std::optional<OptimizerParams> optimizer;
};

class ToyModelType final : public ModelType {
 public:
  ToyModelType() {
    ParamSet<OptimizerParams> optimizer;
    optimizer.param("learning_rate", &OptimizerParams::learning_rate).above(0).doc("of AdamW");
    set_.param("checkpoint", &ModelParams::checkpoint).required().doc("a folder");
    set_.param("head", &ModelParams::head).doc("what the last layer says");
    set_.param("max_positions", &ModelParams::max_positions).at_least(1).doc("the longest sample");
    set_.param("may_recompute", &ModelParams::may_recompute).doc("the backward may compute activations again");
    set_.param("max_sampled_positions", &ModelParams::max_sampled_positions).at_least(0).doc("the longest that can be sampled");
    set_.table("optimizer", &ModelParams::optimizer, optimizer).doc("trains it; frozen without");
  }

  const ParamTable& params() const override { return set_.erased(); }

  std::shared_ptr<const void> bind(const ModelSpec& spec, BindContext& context, ModelFacts& facts) const override {
    auto params = std::make_shared<ModelParams>();
    const size_t before = context.problems.size();
    set_.erased().bind(params.get(), spec.params, context);
    if (context.problems.size() > before) return nullptr;
    facts = {.parameters = 1000,
             .weight_bytes = 4000,
             .published_bytes = 4000,
             .kv_bytes_per_token = 16,
             .max_positions = params->max_positions,
             .max_sampled_positions = params->max_sampled_positions,
             .sampling_limit = "longer ones can only be read",
             .head = params->head};
    facts.activation_bytes = [](const ModelPass& pass) {
      return pass.tokens * (pass.training && !pass.recompute ? 64 : 16) + pass.longest_sample;
    };
    facts.may_recompute = params->may_recompute;
    facts.trainable = params->optimizer.has_value();
    if (facts.trainable) {
      facts.gradient_bytes = 4000, facts.optimizer_bytes = 8000;
      facts.wire_bytes = 2000, facts.received_bytes = 1000;
      facts.folder_bytes = 4000, facts.snapshot_bytes = 12000, facts.version_bytes = 4000;
    }
    return params;
  }

  std::shared_ptr<Model> load(const std::shared_ptr<const void>&, const ModelUsage&) const override { return nullptr; }

 private:
  ParamSet<ModelParams> set_;
};

}  // namespace

void add_toy_nodes(Registry& registry) {
  registry.add<Prompts>();
  registry.add<Samples>();
  registry.add<Generate>();
  registry.add<ExactMatch>();
  registry.add<GroupScore>();
  registry.add<Logprobs>();
  registry.add<Values>();
  registry.add<TokenRewards>();
  registry.add<Gae>();
  registry.add<Grpo>();
  registry.add<TrainPpo>();
  registry.add<SyncWeights>();
  registry.add_component<Objective, PpoClip>();
  registry.set_model_type(std::make_unique<ToyModelType>());
  registry.add_device_kind({.name = "cuda", .missing = {}, .use = {}});
}

std::string ppo_on_roles_text(const std::string& roles, const std::map<std::string, std::string>& on) {
  std::string text = roles;
  for (const std::string& line : split(ppo_text(), '\n')) {
    text += line + "\n";
    if (!line.starts_with("[nodes.")) continue;
    const auto found = on.find(line.substr(7, line.size() - 8));
    if (found != on.end() && !found->second.empty()) text += "on = " + sluice::quoted(found->second) + "\n";
  }
  return text;
}

std::string ppo_text() {
  return R"([pipeline]
name = "ppo"
iterations = 120
seed = 17

[budget]
tokens_in_flight = 16384
micro_batch_tokens = 2048

[schedule]
policy_lag = 0

[runtime]
cores = 1

[models.actor]
checkpoint = "models/tiny"
optimizer = { learning_rate = 3e-4 }

[models.reference]
checkpoint = "models/tiny"

[models.critic]
checkpoint = "models/tiny"
head = "value"
optimizer = { learning_rate = 1e-3 }

[nodes.prompts]
type = "prompts"
groups_per_iteration = 32

[nodes.generate]
type = "generate"
inputs = ["prompts"]
model = "actor"
samples_per_prompt = 4
max_new_tokens = 12

[nodes.score]
type = "exact_match"
inputs = ["generate"]

[nodes.reference]
type = "logprobs"
inputs = ["generate"]
model = "reference"

[nodes.values]
type = "values"
inputs = ["generate"]
model = "critic"

[nodes.rewards]
type = "token_rewards"
inputs = ["score", "reference"]
kl_coefficient = 0.02

[nodes.advantages]
type = "gae"
inputs = ["rewards", "values"]
lambda = 0.95

[nodes.train]
type = "train_ppo"
inputs = ["advantages"]
actor = "actor"
critic = "critic"

[nodes.sync]
type = "sync_weights"
inputs = ["train"]
model = "actor"
)";
}

std::string edited(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("nothing to edit: " + from);
  return text.replace(at, from.size(), to);
}

}  // namespace sluice::engine::testing
