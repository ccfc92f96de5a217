#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/sampling.h"
#include "models/sample/decoder.h"
#include "models/sample/draft_model.h"
#include "models/sample/generation_backend.h"
#include "models/sample/packed_weights.h"
#include "models/sample/sample.h"
#include "models/sample/scheduler.h"

namespace sluice::models {

struct GenerationOptions {
  SamplingOptions sampling;
  std::vector<int64_t> end_of_sequence;             // ids that end a sample; empty: every sample runs to its length
  Precision precision = Precision::kFloat32;        // of the weights that steps get, and of the KV cache
  at::Device device = at::kCPU;                     // where both are
  std::shared_ptr<SharedSteps> together = nullptr;  // other ranks, which have parts of both; null: none
  bool keeps_routes = false;                        // of a mixture: SampleResult::routes
  std::optional<DraftOptions> draft = {};           // the model that guesses; none: texts say what comes next
};

/// How a sample goes on after the token that it sampled last.
enum class Next : uint8_t {
  kGoesOn,  // unless that token is an end of sequence or the last that there is room for
  kEnds,    // as kStopped
  kPauses,  // until resume() or end()
};

/// Asked for every token that is sampled: the sample's id, and its tokens after the prompt, the new one last. Must not call the
/// engine.
using TokenJudge = std::function<Next(uint64_t id, std::span<const int64_t> tokens)>;

/// Why samples of this model must not be longer than config.steady_positions(), with the keys of config.json; empty where they
/// may be as long as max_positions.
std::string limit_of_rotary_scaling(const ModelConfig& config);

/// Continuous batching: samples run side by side, one token a step each; when one ends, the next waiting sample takes its place,
/// and its prompt is read in chunks beside the tokens of the others. What is computed when, and where its keys and values lie, is
/// Scheduler's to decide: a prompt is read once for all samples that have it, or begin with it. How it is computed and drawn is
/// the backend's: the engine gives it the step and a number from each sample's stream, and gets tokens. Cooperative: nothing
/// happens outside step(). Not thread-safe.
///
/// Speculative sampling (GenerationLimits::drafts): a sample's next tokens are guessed and computed beside the one that is due,
/// and what is drawn after each of them is what would be drawn there anyway. As long as that is what was guessed, it is taken,
/// and the numbers of its stream; the rest is forgotten. A text guesses for itself, or another model does
/// (GenerationOptions::draft), which has a KV cache of its own.
///
/// A sample's tokens and log-probabilities are bit-identical whatever it runs beside, whatever the limits are, whatever it
/// shares, whatever is guessed, however long it paused, however often it was preempted, and for any number of threads. They
/// depend on its prompt, on what it was given, its stream and the weights, which must be the same from its first step to its
/// last.
class GenerationEngine {
 public:
  /// Throws UserError when an option or a limit is out of range.
  GenerationEngine(const ModelConfig& config, const GenerationOptions& options, const GenerationLimits& limits);

  /// Throws UserError when the sample can never run: an empty prompt, ids outside the vocabulary, nothing to sample, longer than
  /// config.steady_positions() or the whole KV cache.
  void submit(SampleRequest request);

  /// Who decides, from the next step on, where samples end or pause; none: an end of sequence and the length end them.
  void set_judge(TokenJudge judge) { judge_ = std::move(judge); }

  /// Of the tokens that are sampled from now on. Throws UserError when it is out of range.
  void set_temperature(double temperature);

  /// One cooperative step; returns the samples that ended in it, to be moved from until the next call. Throws UserError naming
  /// the sample when its logits are not finite; clear() is then the only thing to do. Once every running sample has started, a
  /// step in which none is preempted allocates no memory. `draft`: the weights of the model that guesses, where there is one.
  std::span<SampleResult> step(const PackedWeights& weights, const PackedWeights* draft = nullptr);

  /// The weights change: what is cached of prompts that have been read is not used again. Samples that run keep what they have of
  /// the old ones, unless they are preempted.
  void forget_prefixes() { scheduler_.forget_prefixes(); }

  /// Lets a paused sample go on after `tokens` more, which it did not sample: they are read as a prompt is. At least one of its
  /// max_new_tokens must be left after them. Throws UserError for ids outside the vocabulary. A paused sample keeps its place
  /// and its KV blocks until it is preempted, and costs a step nothing.
  void resume(uint64_t id, std::span<const int64_t> tokens);

  /// Ends a paused sample.
  SampleResult end(uint64_t id);

  /// Takes its place and its KV blocks from a sample, if it has them; it keeps its text and does not run before restart(), which
  /// has it wait again, in order of age: it is read as a prompt is, and goes on as if nothing had happened. Throws InternalError
  /// when there is no such sample, or nothing to restart.
  void preempt(uint64_t id) { scheduler_.preempt(id); }
  void restart(uint64_t id) { scheduler_.restart(id); }

  /// What the sample `id` has after its prompt so far; empty when there is no sample of that id. Valid until the next call.
  std::span<const int64_t> sampled(uint64_t id) const;

  /// Abandons everything, waiting and running, and frees the blocks.
  void clear() { scheduler_.clear(); }

  bool idle() const { return scheduler_.idle(); }
  int64_t running() const { return static_cast<int64_t>(scheduler_.running().size()); }
  int64_t waiting() const { return scheduler_.waiting(); }  // the preempted ones included
  const StepWork& last_step() const { return scheduler_.work(); }
  const GenerationBackend& backend() const { return *backend_; }
  const BlockPool& kv_blocks() const { return scheduler_.pool(); }

  /// Tokens that the blocks in use have room for: those of one sample, shared ones included, and of all, each block counted once.
  int64_t kv_tokens(uint64_t id) const;
  int64_t kv_tokens() const { return kv_blocks().in_use() * backend().block_size(); }

  /// Of the KV cache, with that of the model that guesses: of a block, and of all, whether in use or not.
  int64_t kv_bytes_per_block() const { return backend().bytes_per_block() + (draft_ ? draft_->bytes_per_block() : 0); }
  int64_t kv_bytes_held() const { return backend().blocks() * kv_bytes_per_block(); }

  /// The most bytes of it that were in use at a time since the last call.
  int64_t take_kv_peak_bytes() { return scheduler_.take_peak() * kv_bytes_per_block(); }

 private:
  void prepare(const PackedWeights* draft);
  void compute(const PackedWeights& weights);
  void plan_draws();
  void take_drawn();
  void take_drawn(Sample& sample, std::span<const SampledToken> drawn);
  bool ends(Sample& sample);
  bool draws_at_random(const Sample& sample) const;
  void collect_routes();
  void open_undrawn(Sample& sample) const;
  void collect();
  SampleResult take(Sample& sample);
  Sample& paused_sample(uint64_t id);
  void check_ids(const std::string& name, std::span<const int64_t> ids) const;
  void check_length(const std::string& name, const SampleRequest& request) const;

  ModelConfig config_;
  GenerationOptions options_;
  const RouteForm routes_;
  Scheduler scheduler_;
  std::unique_ptr<GenerationBackend> backend_;
  std::unique_ptr<DraftModel> draft_;  // null: none guesses
  TokenJudge judge_;
  std::vector<DecodeSequence> batch_;  // of the step at hand, as the next two
  std::vector<TokenDraw> draws_;
  std::vector<SampledToken> drawn_;
  std::vector<SampleResult> results_;  // of the last step
};

}  // namespace sluice::models
