#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/contract.h"
#include "engine/contract/model.h"
#include "engine/contract/run_folder.h"
#include "engine/contract/state.h"
#include "engine/contract/world/metrics.h"
#include "engine/contract/world/totals.h"
#include "engine/contract/world/world.h"

namespace sluice::engine {

class OutsideWork;

/// Once through the graph.
struct Iteration {
  int64_t index = 0;
  int64_t policy_version = 0;  // the version of the weights that this iteration samples with
};

/// What a node may hold on to for its whole life: this struct, and everything in it, outlives the node.
struct NodeResources {
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  std::string node;                                      // its name in the pipeline
  uint64_t seed = 0;                                     // [pipeline] seed
  int threads = 1;                                       // cores of its executor
  int64_t tokens_in_flight = 0;                          // its path's share of [budget]
  int64_t pass_tokens = kNoLimit;                        // [budget]: the most that a node lets a model compute at once
  Admission admission = Admission::kWorstCase;           // likewise
  WeightUpdate update = WeightUpdate::kExact;            // [schedule]; of a path that measures always exact
  KvAtUpdate update_kv = KvAtUpdate::kKeep;              // likewise
  int64_t kv_bytes = 0;                                  // the plan's prediction for what is sampled from: the size of a KV pool
  RunFolder run_folder;                                  // where it writes, and nowhere else; without a path outside a run
  std::vector<TextCheck> text_checks;                    // of text columns that it writes, by nodes that read them
  std::optional<PromptLimit> prompt_limit;               // sources: of the rollout that takes their prompts, if one does
  std::map<std::string, std::shared_ptr<Model>> models;  // by name, those that its contract declares
  World world;
  MetricsRecorder* metrics = nullptr;
  Totals* totals = nullptr;
  OutsideWork* outside = nullptr;  // for who waits for a server or a process (outside_work.h); null: nobody watches
};

/// What every node has. A node runs on one executor thread; nothing of it is called concurrently.
class NodeBase {
 public:
  virtual ~NodeBase() = default;

  /// Both arrive in order with the data: begin before the first micro-batch of an iteration, end after its last, when totals can
  /// be read. An iteration that is interrupted never ends.
  virtual void begin_iteration(const Iteration&) {}
  virtual void end_iteration(const Iteration&) {}

  /// Everything that the node keeps from this iteration to the next and that is not in its parameters or models: called right
  /// after each end_iteration(), also where nothing is saved, so it is to be cheap.
  virtual void save(StateWriter&) const {}

  /// Takes over what save() put at the end of the iteration before; called before the first begin_iteration() of a run that goes
  /// on, and of a source on a path that measures after each end_iteration(), with what it saved first: so that the same groups
  /// come again. Throws UserError when something is missing.
  virtual void load(const StateReader&) {}
};

/// An ordinary node.
class Node : public NodeBase {
 public:
  virtual void process(MicroBatch& batch) = 0;

  /// Where the contract's scope is the iteration, what follows is called instead of `process`, with all micro-batches in order:
  /// for each step of those that the contract declares first gather(), which adds to totals, then process_iteration(), which may
  /// read what all ranks have added.
  virtual void gather(int64_t /*step*/, std::span<MicroBatch> /*batches*/) {}
  virtual void process_iteration(int64_t /*step*/, std::span<MicroBatch> batches) {
    for (MicroBatch& batch : batches) process(batch);
  }
};

/// Where groups come from.
class Source : public NodeBase {
 public:
  /// Fills the next group; iteration and index are set. False: the data has ended, and so does the run after this iteration.
  virtual bool next_group(Group& group) = 0;
};

/// Makes samples for the groups of a source, many at a time, one cooperative step after the other.
class Rollout : public NodeBase {
 public:
  /// What a step reports to the engine.
  class Sink {
   public:
    virtual ~Sink() = default;

    /// `tokens` of that group's credit are not needed: they will never be used or, on demand, not before they are taken again.
    virtual void return_credit(int64_t group_index, int64_t tokens) = 0;

    /// On demand: takes `tokens` more credit for that group. False: the budget does not have them; no group is admitted then
    /// until a step is refused nothing.
    virtual bool take_credit(int64_t group_index, int64_t tokens) = 0;

    /// A group is complete: with samples, tokens and all columns that the contract writes. In any order; on demand in the order
    /// of their index, because what is finished holds its credit, but not on a rank that makes groups for others
    /// (order_of_groups() in engine/schedule/stages/sample_credit.h).
    virtual void finish(Group group) = 0;

    /// What the step did, told once a step: prompt tokens that it read and samples that it gave a token. For metrics and cost
    /// models.
    virtual void worked(int64_t prompt_tokens, int64_t sampled_tokens) = 0;
  };

  /// Asked once for each group, in order, before anything else. False: no samples are made for it; it is dropped before it takes
  /// credit, and its iteration has a group less unless a filter has it replaced.
  virtual bool wants(const Group&) { return true; }

  /// The most tokens that this group can become. At most the contract's bound for a group.
  virtual int64_t worst_tokens(const Group& prompt) const = 0;

  /// On demand: the tokens that this group is admitted with, at most the worst. A rollout whose contract says on_demand_tokens
  /// takes the rest through Sink::take_credit() before it samples; see SampleCredit.
  virtual int64_t least_tokens(const Group& prompt) const { return worst_tokens(prompt); }

  /// Takes a group whose worst case, or on demand least, was admitted.
  virtual void start(Group prompt) = 0;

  /// One cooperative step, such as one decoded token for every running sample.
  virtual void step(Sink& sink) = 0;

  /// Nothing was started that is not finished.
  virtual bool idle() const = 0;

  /// Another step would do nothing before credit is free that the last one was refused.
  virtual bool blocked() const { return false; }

  /// Bytes that it has for running samples (its KV pool): allocated, and of these the most in use at a time so far.
  struct PoolBytes {
    int64_t held = 0;
    int64_t used = 0;
  };
  virtual PoolBytes pool_bytes() const { return {}; }
};

}  // namespace sluice::engine
