#include "models/generation/generation.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace sluice::models {
namespace {

std::string text(int64_t number) { return std::to_string(number); }

const GenerationLimits& checked(const GenerationLimits& limits) {
  if (limits.max_running_samples < 1) throw UserError("max_running_samples must be at least 1");
  if (limits.max_step_tokens < limits.max_running_samples)
    throw UserError("max_step_tokens = " + text(limits.max_step_tokens) +
                        " is less than max_running_samples = " + text(limits.max_running_samples),
                    "every running sample decodes one token a step: raise the one or lower the other");
  if (limits.kv_block_size < 16 || limits.kv_block_size % 16 != 0) throw UserError("kv_block_size must be a multiple of 16");
  if (limits.kv_blocks < 1) throw UserError("kv_blocks must be at least 1");
  return limits;
}

}  // namespace

std::string limit_of_rotary_scaling(const ModelConfig& config) {
  if (config.steady_positions() == config.max_positions) return {};
  const char* const kind = config.rope.scaling == RopeScaling::kDynamic ? "dynamic" : "longrope";
  return "rotary scaling \"" + std::string(kind) + "\" turns the tokens of a sample that is longer than " +
         "original_max_position_embeddings = " + text(config.rope.original_positions) +
         " by other angles than those that were cached";
}

GenerationEngine::GenerationEngine(const ModelConfig& config, const GenerationOptions& options, const GenerationLimits& limits)
    : config_(config),
      options_(options),
      limits_(checked(limits)),
      cache_(config, limits.kv_block_size, limits.kv_blocks, options.precision),
      pool_(limits.kv_blocks),
      decoder_(config),
      sampler_(options.sampling) {}

// The last sampled token is never fed back, so it needs no room.
int64_t GenerationEngine::worst_blocks(const SampleRequest& request) const {
  return cache_.blocks_for(static_cast<int64_t>(request.prompt.size()) + request.max_new_tokens - 1);
}

void GenerationEngine::submit(SampleRequest request) {
  const std::string name = "sample " + std::to_string(request.id);
  const int64_t prompt = static_cast<int64_t>(request.prompt.size());
  if (prompt == 0) throw UserError(name + " has an empty prompt", "a prompt needs at least one token");
  if (request.max_new_tokens < 1) throw UserError(name + ": max_new_tokens must be at least 1");
  check_length(name, request);
  check_ids(name, request.prompt);
  decoder_.reserve(prompt + request.max_new_tokens);
  if (worst_blocks(request) > limits_.kv_blocks)
    throw UserError(
        name + " may need " + text(worst_blocks(request)) + " KV blocks; the whole cache has " + text(limits_.kv_blocks),
        "raise kv_blocks or lower max_new_tokens");
  waiting_.push_back(std::move(request));
}

void GenerationEngine::check_ids(const std::string& name, std::span<const int64_t> ids) const {
  for (const int64_t id : ids)
    if (id < 0 || id >= config_.vocab_size)
      throw UserError(name + ": token id " + text(id) + " is outside the vocabulary of " + text(config_.vocab_size),
                      "the tokenizer belongs to another model");
}

void GenerationEngine::check_length(const std::string& name, const SampleRequest& request) const {
  const int64_t prompt = static_cast<int64_t>(request.prompt.size()), most = config_.steady_positions();
  if (request.max_new_tokens <= most - prompt) return;
  const std::string lengths =
      name + ": a prompt of " + text(prompt) + " and " + text(request.max_new_tokens) + " new tokens are more than the ";
  const std::string help = "lower max_new_tokens or drop long prompts";
  const std::string reason = limit_of_rotary_scaling(config_);
  if (reason.empty()) throw UserError(lengths + "model's " + text(most) + " positions", help);
  throw UserError(lengths + text(most) + " tokens that can be generated: " + reason, help);
}

std::vector<SampleResult> GenerationEngine::step(const PackedWeights& weights) {
  last_step_ = {};
  admit();
  schedule();
  sample_next(forward(weights));
  return collect();
}

void GenerationEngine::admit() {
  while (!waiting_.empty() && running() < limits_.max_running_samples) {
    const int64_t blocks = worst_blocks(waiting_.front());
    if (promised_blocks_ + blocks > limits_.kv_blocks) return;  // in order: nobody overtakes a long sample
    promised_blocks_ += blocks;
    Sample sample{.request = std::move(waiting_.front()), .promised_blocks = blocks};
    waiting_.pop_front();
    sample.result.id = sample.request.id;
    sample.tokens = sample.request.prompt;
    sample.given = static_cast<int64_t>(sample.tokens.size());
    running_.push_back(std::move(sample));
  }
}

// One token for every decoding sample, what is left of the step for prompts and what was given, oldest first.
void GenerationEngine::schedule() {
  int64_t left = limits_.max_step_tokens;
  for (Sample& sample : running_) {
    sample.scheduled = sample.decoding() && !sample.paused ? 1 : 0;
    left -= sample.scheduled;
  }
  for (Sample& sample : running_) {
    if (sample.decoding()) continue;
    sample.scheduled = std::min(sample.given_left(), left);
    left -= sample.scheduled;
    last_step_.prompt_tokens += sample.scheduled;
  }
}

std::span<const float> GenerationEngine::forward(const PackedWeights& weights) {
  batch_.clear();
  for (Sample& sample : running_) {
    if (sample.scheduled == 0) continue;
    pool_.extend(sample.blocks, cache_.blocks_for(sample.cached + sample.scheduled));
    batch_.push_back(
        {.tokens = std::span(sample.tokens).subspan(static_cast<size_t>(sample.cached), static_cast<size_t>(sample.scheduled)),
         .cached = sample.cached,
         .blocks = sample.blocks,
         .wants_logits = sample.given_left() <= sample.scheduled});
  }
  if (batch_.empty()) return {};  // all that run are paused
  return decoder_.step(weights, cache_, batch_);
}

void GenerationEngine::sample_next(std::span<const float> logits) {
  const size_t vocabulary = static_cast<size_t>(config_.vocab_size);
  rows_.clear();
  for (Sample& sample : running_) {
    sample.cached += sample.scheduled;
    sample.sampled = sample.scheduled > 0 && sample.decoding();
    if (!sample.sampled) continue;
    rows_.push_back({.id = sample.request.id,
                     .logits = logits.subspan(rows_.size() * vocabulary, vocabulary),
                     .stream = &sample.request.stream,
                     .greedy = sample.request.greedy,
                     .context = sample.tokens,
                     .sampled = sample.new_tokens()});
  }
  drawn_.resize(rows_.size());
  sampler_.sample(rows_, drawn_);
  auto next = drawn_.begin();
  for (Sample& sample : running_) {
    if (!sample.sampled) continue;
    sample.tokens.push_back(next->id);
    sample.result.logprobs.push_back(next++->logprob);
    ++last_step_.sampled_tokens;
  }
}

bool GenerationEngine::ended(Sample& sample) {
  if (!sample.sampled) return false;
  const Next next = judge_ ? judge_(sample.request.id, sample.new_tokens()) : Next::kGoesOn;
  const auto& ends = options_.end_of_sequence;
  const bool end = std::find(ends.begin(), ends.end(), sample.tokens.back()) != ends.end();
  const bool stopped = next == Next::kEnds;
  sample.result.finish = stopped ? FinishReason::kStopped : end ? FinishReason::kEndOfSequence : FinishReason::kLength;
  sample.paused = next == Next::kPauses;
  if (sample.paused) return false;
  return stopped || end || static_cast<int64_t>(sample.new_tokens().size()) == sample.request.max_new_tokens;
}

std::vector<SampleResult> GenerationEngine::collect() {
  std::vector<SampleResult> results;
  for (Sample& sample : running_) {
    if (ended(sample)) results.push_back(take(sample));
  }
  forget_taken();
  return results;
}

SampleResult GenerationEngine::take(Sample& sample) {
  pool_.release(sample.blocks);
  promised_blocks_ -= sample.promised_blocks;
  sample.promised_blocks = 0;
  sample.result.tokens.assign(sample.new_tokens().begin(), sample.new_tokens().end());
  return std::move(sample.result);
}

void GenerationEngine::forget_taken() {
  std::erase_if(running_, [](const Sample& sample) { return sample.promised_blocks == 0; });
}

GenerationEngine::Sample& GenerationEngine::paused_sample(uint64_t id) {
  const auto found =
      std::find_if(running_.begin(), running_.end(), [&](const Sample& sample) { return sample.request.id == id; });
  SLUICE_CHECK(found != running_.end() && found->paused, "sample " + std::to_string(id) + " is not paused");
  return *found;
}

void GenerationEngine::resume(uint64_t id, std::span<const int64_t> tokens) {
  Sample& sample = paused_sample(id);
  check_ids("sample " + std::to_string(id), tokens);
  const int64_t begin = static_cast<int64_t>(sample.new_tokens().size()), end = begin + static_cast<int64_t>(tokens.size());
  SLUICE_CHECK(end < sample.request.max_new_tokens,
               "sample " + std::to_string(id) + " is given more tokens than it has room for");
  sample.paused = false;
  if (tokens.empty()) return;
  sample.tokens.insert(sample.tokens.end(), tokens.begin(), tokens.end());
  sample.given = static_cast<int64_t>(sample.tokens.size());
  sample.result.given.push_back({begin, end});
}

SampleResult GenerationEngine::end(uint64_t id) {
  SampleResult result = take(paused_sample(id));
  forget_taken();
  return result;
}

std::span<const int64_t> GenerationEngine::sampled(uint64_t id) const {
  const auto found =
      std::find_if(running_.begin(), running_.end(), [&](const Sample& sample) { return sample.request.id == id; });
  return found == running_.end() ? std::span<const int64_t>() : found->new_tokens();
}

void GenerationEngine::clear() {
  for (Sample& sample : running_) pool_.release(sample.blocks);
  running_.clear();
  waiting_.clear();
  promised_blocks_ = 0;
}

}  // namespace sluice::models
