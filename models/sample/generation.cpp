#include "models/sample/generation.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace sluice::models {
namespace {

std::string text(int64_t number) { return std::to_string(number); }

GenerationLimits& checked(GenerationLimits& limits) {
  if (limits.max_running_samples < 1) throw UserError("max_running_samples must be at least 1");
  if (limits.max_step_tokens < limits.max_running_samples)
    throw UserError("max_step_tokens = " + text(limits.max_step_tokens) +
                        " is less than max_running_samples = " + text(limits.max_running_samples),
                    "every running sample decodes one token a step: raise the one or lower the other");
  if (limits.kv_block_size < 16 || limits.kv_block_size % 16 != 0) throw UserError("kv_block_size must be a multiple of 16");
  if (limits.kv_blocks < 1) throw UserError("kv_blocks must be at least 1");
  if (limits.drafts.tokens < 0 || limits.drafts.samples < 0) throw UserError("drafts cannot be fewer than none");
  return limits;
}

GenerationLimits limits_with(GenerationLimits limits, const GenerationOptions& options) {
  checked(limits).drafts.by_model = options.draft.has_value();
  return limits;
}

// By a step of one sample, which takes about as long as this: all but the table of embeddings, where that is apart.
double bytes_read(const PackedWeights& weights, const ModelConfig& config) {
  const int64_t table = config.tied_embeddings ? 0 : config.vocab_size * config.hidden_size * bytes_of(weights.precision());
  return static_cast<double>(weights.bytes() + weights.shared_bytes() - table);
}

// Rows that double the time of a step: on CPUs of two to four cores 10 to 24 were measured; a device reads weights for many more.
double doubling_rows(at::Device device) { return device.is_cpu() ? 12 : 200; }

std::unique_ptr<DraftModel> draft_model(const ModelConfig& config, const GenerationOptions& options,
                                        const GenerationLimits& limits) {
  if (!options.draft) return nullptr;
  const int64_t vocabulary = options.draft->config.vocab_size;
  if (vocabulary != config.vocab_size)
    throw UserError("a model with a vocabulary of " + text(vocabulary) + " cannot guess for one of " + text(config.vocab_size),
                    "take a draft of the same family");
  SLUICE_CHECK(!options.together, "ranks that sample together have no model that guesses");
  return std::make_unique<DraftModel>(*options.draft, options.sampling, limits.kv_block_size, limits.kv_blocks,
                                      limits.max_step_tokens);
}

}  // namespace

std::string limit_of_rotary_scaling(const ModelConfig& config) {
  if (config.steady_positions() == config.max_positions) return {};
  int64_t which = 0;
  while (!config.rope_at(which).depends_on_length()) ++which;
  const RopeConfig& rope = config.rope_at(which);
  const char* const kind = rope.scaling == RopeScaling::kDynamic ? "dynamic" : "longrope";
  return "rotary scaling \"" + std::string(kind) + "\" turns the tokens of a sample that is longer than " +
         "original_max_position_embeddings = " + text(rope.original_positions) + " by other angles than those that were cached";
}

GenerationEngine::GenerationEngine(const ModelConfig& config, const GenerationOptions& options, const GenerationLimits& limits)
    : config_(config),
      options_(options),
      routes_(route_form(config)),
      scheduler_(limits_with(limits, options)),
      backend_(GenerationBackend::make(config, {.sampling = options.sampling,
                                                .device = options.device,
                                                .precision = options.precision,
                                                .block_size = limits.kv_block_size,
                                                .blocks = limits.kv_blocks,
                                                .together = options.together,
                                                .keeps_routes = options.keeps_routes})),
      draft_(draft_model(config, options, limits)) {
  const int64_t rows = limits.max_running_samples + (limits.drafts.tokens > 0 ? limits.max_step_tokens : 0);
  batch_.reserve(static_cast<size_t>(rows));
  draws_.reserve(static_cast<size_t>(rows));
  drawn_.reserve(static_cast<size_t>(rows));
  results_.reserve(static_cast<size_t>(limits.max_running_samples));
}

void GenerationEngine::submit(SampleRequest request) {
  const std::string name = "sample " + std::to_string(request.id);
  if (request.prompt.size() == 0) throw UserError(name + " has an empty prompt", "a prompt needs at least one token");
  if (request.max_new_tokens < 1) throw UserError(name + ": max_new_tokens must be at least 1");
  check_length(name, request);
  check_ids(name, request.prompt.ids());
  if (!scheduler_.fits(request))
    throw UserError(name + " may need " + text(scheduler_.worst_blocks(request)) + " KV blocks; the whole cache has " +
                        text(backend().blocks()),
                    "raise kv_blocks or lower max_new_tokens");
  backend_->reserve(request.prompt.size() + request.max_new_tokens);
  if (draft_) draft_->reserve(request.prompt.size() + request.max_new_tokens);
  Sample& sample = scheduler_.submit(std::move(request));
  if (backend_->keeps_routes())
    sample.result.routes.reserve(static_cast<size_t>((sample.prompt() + sample.request.max_new_tokens) * routes_.token_bytes()));
}

void GenerationEngine::check_ids(const std::string& name, std::span<const int64_t> ids) const {
  for (const int64_t id : ids)
    if (id < 0 || id >= config_.vocab_size)
      throw UserError(name + ": token id " + text(id) + " is outside the vocabulary of " + text(config_.vocab_size),
                      "the tokenizer belongs to another model");
}

void GenerationEngine::check_length(const std::string& name, const SampleRequest& request) const {
  const int64_t prompt = request.prompt.size(), most = config_.steady_positions();
  const int64_t most_guessed = draft_ ? draft_->config().steady_positions() : most;
  if (most_guessed < most && request.max_new_tokens > most_guessed - prompt)
    throw UserError(name + ": a prompt of " + text(prompt) + " and " + text(request.max_new_tokens) +
                        " new tokens are more than the " + text(most_guessed) + " positions of the model that guesses",
                    "lower max_new_tokens, or take another draft");
  if (request.max_new_tokens <= most - prompt) return;
  const std::string lengths =
      name + ": a prompt of " + text(prompt) + " and " + text(request.max_new_tokens) + " new tokens are more than the ";
  const std::string help = "lower max_new_tokens or drop long prompts";
  const std::string reason = limit_of_rotary_scaling(config_);
  if (reason.empty()) throw UserError(lengths + "model's " + text(most) + " positions", help);
  throw UserError(lengths + text(most) + " tokens that can be generated: " + reason, help);
}

void GenerationEngine::set_temperature(double temperature) {
  if (temperature == options_.sampling.temperature) return;
  options_.sampling.temperature = temperature;
  backend_->set_sampling(options_.sampling);
  if (draft_) draft_->set_sampling(options_.sampling);
}

std::span<SampleResult> GenerationEngine::step(const PackedWeights& weights, const PackedWeights* draft) {
  SLUICE_CHECK((draft != nullptr) == (draft_ != nullptr), "weights of a model that guesses, or a step without them");
  if (draft_) {
    const double share = bytes_read(*draft, draft_->config()) / bytes_read(weights, config_);
    scheduler_.set_draft_costs(options_.draft->cost.value_or(share), doubling_rows(options_.device));
  }
  scheduler_.plan();
  prepare(draft);
  compute(weights);
  take_drawn();
  collect_routes();
  collect();
  return results_;
}

// What the step finds in the caches, and what is guessed for it.
void GenerationEngine::prepare(const PackedWeights* draft) {
  for (const auto& [from, to] : scheduler_.copies()) {
    backend_->copy_block(from, to);
    if (draft_) draft_->copy_block(from, to, scheduler_.pool());
  }
  if (draft_) draft_->guess(*draft, scheduler_.running(), scheduler_.pool());
}

void GenerationEngine::compute(const PackedWeights& weights) {
  batch_.clear();
  for (const auto& sample : scheduler_.running()) {
    if (sample->scheduled == 0) continue;
    batch_.push_back({.tokens = Scheduler::next_tokens(*sample),
                      .cached = sample->cached,
                      .blocks = sample->blocks,
                      .wants_logits = sample->row >= 0});
    for (size_t i = 0; i < sample->drafts.size(); ++i) {
      batch_.push_back({.tokens = std::span<const int64_t>(sample->drafts).subspan(i, 1),
                        .cached = sample->cached + 1 + static_cast<int64_t>(i),
                        .blocks = sample->blocks});
    }
  }
  scheduler_.advance();
  plan_draws();
  if (!batch_.empty()) backend_->step(weights, batch_, draws_, drawn_);  // else all that run are paused
}

bool GenerationEngine::draws_at_random(const Sample& sample) const {
  return !sample.request.greedy && options_.sampling.temperature > 0;
}

// A sample's stream gives one number for each token that is drawn at random, and none else. What follows a guess is drawn with
// the number that its turn would have, from after the guesses before it, which stand after the response until it is known.
void GenerationEngine::plan_draws() {
  draws_.clear();
  for (const auto& sample : scheduler_.running()) {
    if (sample->row < 0) continue;
    RandomStream stream = sample->request.stream;
    std::vector<int64_t>& tokens = sample->result.tokens;
    const size_t sampled = tokens.size();
    tokens.insert(tokens.end(), sample->drafts.begin(), sample->drafts.end());
    for (size_t i = 0; i <= sample->drafts.size(); ++i) {
      draws_.push_back({.id = sample->request.id,
                        .row = sample->row + static_cast<int64_t>(i),
                        .uniform = draws_at_random(*sample) ? stream.uniform() : 0,
                        .greedy = sample->request.greedy,
                        .prompt = sample->request.prompt.ids(),
                        .response = std::span<const int64_t>(tokens).first(sampled + i)});
    }
  }
  drawn_.resize(draws_.size());
}

void GenerationEngine::take_drawn() {
  std::span<const SampledToken> drawn = drawn_;
  for (const auto& sample : scheduler_.running()) {
    sample->ended = false;
    if (sample->row < 0) continue;
    const size_t count = 1 + sample->drafts.size();
    take_drawn(*sample, drawn.first(count));
    drawn = drawn.subspan(count);
  }
}

void GenerationEngine::take_drawn(Sample& sample, std::span<const SampledToken> drawn) {
  std::vector<int64_t>& tokens = sample.result.tokens;
  tokens.resize(tokens.size() - sample.drafts.size());
  size_t right = 0;
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (draws_at_random(sample)) sample.request.stream.uniform();
    tokens.push_back(drawn[i].id);
    sample.result.logprobs.push_back(drawn[i].logprob);
    ++scheduler_.work().sampled_tokens;
    sample.ended = ends(sample);
    const bool goes_on = !sample.ended && !sample.paused && i < sample.drafts.size() && drawn[i].id == sample.drafts[i];
    if (!goes_on) break;
    ++right;
  }
  scheduler_.keep_drafts(sample, static_cast<int64_t>(right));
}

// With its last token.
bool GenerationEngine::ends(Sample& sample) {
  const std::vector<int64_t>& tokens = sample.result.tokens;
  const Next next = judge_ ? judge_(sample.request.id, tokens) : Next::kGoesOn;
  const auto& ends = options_.end_of_sequence;
  const bool end = std::find(ends.begin(), ends.end(), tokens.back()) != ends.end();
  const bool stopped = next == Next::kEnds;
  sample.result.finish = end ? FinishReason::kEndOfSequence : stopped ? FinishReason::kStopped : FinishReason::kLength;
  sample.paused = next == Next::kPauses;
  if (sample.paused) return false;
  return stopped || end || static_cast<int64_t>(tokens.size()) == sample.request.max_new_tokens;
}

// As soon as they are known: a sample that is preempted reads its tokens again, but the routes are those that it was sampled
// with.
void GenerationEngine::collect_routes() {
  if (!backend_->keeps_routes()) return;
  for (const auto& sample : scheduler_.running()) {
    std::string& routes = sample->result.routes;
    backend_->append_routes(sample->blocks, static_cast<int64_t>(routes.size()) / routes_.token_bytes(), sample->cached, routes);
  }
}

// After the last layer of a token there is nothing but its logits: where none were wanted of this sample, its route there
// depends on what other samples wanted of the same prompt.
void GenerationEngine::open_undrawn(Sample& sample) const {
  auto* const routes = reinterpret_cast<uint8_t*>(sample.result.routes.data());
  const int64_t bytes = routes_.token_bytes();
  SLUICE_CHECK(static_cast<int64_t>(sample.result.routes.size()) == (sample.size() - 1) * bytes,
               "a sample without all its routes");
  const auto open = [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) open_last_layer(routes_, routes + token * bytes);
  };
  open(0, sample.prompt() - 1);
  for (const TokenRun& given : sample.result.given) open(sample.prompt() + given.begin - 1, sample.prompt() + given.end - 1);
  sample.result.routes.shrink_to_fit();
}

void GenerationEngine::collect() {
  results_.clear();
  for (const auto& sample : scheduler_.running()) {
    if (sample->ended) results_.push_back(take(*sample));
  }
  if (!results_.empty()) scheduler_.drop_done();
}

SampleResult GenerationEngine::take(Sample& sample) {
  scheduler_.finish(sample);
  if (backend_->keeps_routes()) open_undrawn(sample);
  return std::move(sample.result);
}

Sample& GenerationEngine::paused_sample(uint64_t id) {
  Sample* const sample = scheduler_.find(id);
  SLUICE_CHECK(sample != nullptr && sample->paused, "sample " + std::to_string(id) + " is not paused");
  return *sample;
}

void GenerationEngine::resume(uint64_t id, std::span<const int64_t> tokens) {
  Sample& sample = paused_sample(id);
  check_ids("sample " + std::to_string(id), tokens);
  const int64_t begin = static_cast<int64_t>(sample.result.tokens.size()), end = begin + static_cast<int64_t>(tokens.size());
  SLUICE_CHECK(end < sample.request.max_new_tokens,
               "sample " + std::to_string(id) + " is given more tokens than it has room for");
  if (!tokens.empty()) sample.result.given.push_back({begin, end});
  scheduler_.resume(sample, tokens);
}

SampleResult GenerationEngine::end(uint64_t id) {
  SampleResult result = take(paused_sample(id));
  scheduler_.drop_done();
  return result;
}

std::span<const int64_t> GenerationEngine::sampled(uint64_t id) const {
  const Sample* const sample = scheduler_.find(id);
  return sample == nullptr ? std::span<const int64_t>() : std::span<const int64_t>(sample->result.tokens);
}

int64_t GenerationEngine::kv_tokens(uint64_t id) const {
  const Sample* const sample = scheduler_.find(id);
  return sample == nullptr ? 0 : static_cast<int64_t>(sample->blocks.size()) * backend().block_size();
}

}  // namespace sluice::models
