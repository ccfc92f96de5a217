#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/files/file_system.h"
#include "engine/contract/params/param_set.h"
#include "engine/contract/params/scheduled_number.h"
#include "engine/contract/settings.h"
#include "engine/contract/world/common_memory.h"
#include "engine/contract/world/model_versions.h"
#include "engine/contract/world/pass_group.h"
#include "engine/contract/world/publication.h"
#include "engine/contract/world/world.h"

namespace sluice::engine {

/// What a model computes at once.
struct ModelPass {
  bool training = false;       // keeps what its backward needs
  bool sampling = false;       // a step of a rollout: a token is drawn after every one of these, at most
  int64_t tokens = 0;          // of all samples
  int64_t longest_sample = 0;  // tokens
  int64_t ranks = 1;           // that compute it together
  int64_t ring = 1;            // blocks that these make in attention
  int64_t expert_ranks = 1;    // groups of so many share out whole experts
  bool recompute = false;      // of a pass that trains: ModelUsage::recompute
};

/// Weights that an optimizer treats alike.
struct WeightGroup {
  std::string text;  // for people: "*.norm.weight: weight_decay 0.0"
  int64_t parameters = 0;
};

/// What a plan must know of a model before anything is loaded.
struct ModelFacts {
  int64_t parameters = 0;
  int64_t idle_parameters = 0;  // of these, those that a token does not go through: of experts that it is not sent to
  int64_t weight_bytes = 0;     // of the live weights, where it has some (ModelUsage)
  int64_t common_bytes = 0;     // of the live weights, what ranks may have in common: all but adapters
  int64_t published_bytes = 0;  // of each version that is kept for sampling, beside the live weights
  int64_t gradient_bytes = 0;   // 0 when frozen
  int64_t passing_bytes = 0;    // of these, what a backward holds at a time where ranks add them up in common; 0: they do not
  std::function<int64_t(int64_t expert_ranks)> shared_passing_bytes;  // where so many share out experts; absent: these
  int64_t optimizer_bytes = 0;                                        // 0 when frozen
  int64_t snapshot_bytes = 0;  // of the copy that is taken to be saved, without older versions; 0 when frozen
  int64_t version_bytes = 0;   // of each older version that is saved
  int64_t folder_bytes = 0;    // of the complete folder that is saved of it, beside snapshot and versions; 0 when frozen
  int64_t wire_bytes = 0;      // of what ranks that train it send of a version to those that sample from it; 0 when frozen
  int64_t received_bytes = 0;  // that one of those has beside its published versions; 0 when frozen
  std::function<int64_t(int64_t ranks, int64_t expert_ranks)>
      shared_version_bytes;  // of published_bytes, what a rank has at most where so many sample together (ModelUsage)
  int64_t kv_bytes_per_token = 0;
  int64_t kv_block_tokens = 1;        // a running sample holds whole blocks of so many tokens
  int64_t max_positions = 0;          // the longest sample it can take
  int64_t max_sampled_positions = 0;  // the longest that can be sampled from it; 0: max_positions
  std::string sampling_limit;         // why that is less than max_positions

  bool reads_published = false;  // frozen and sampled from, its passes read the published version: it has no live weights then

  /// Why the log-probabilities that it samples with are not, bit for bit, those that its training computes. Empty: they are.
  std::string sampling_differs;

  /// The most bytes that a pass takes beside weights, gradients and columns. Absent: not known, counted as 0.
  std::function<int64_t(const ModelPass&)> activation_bytes;
  bool may_recompute = false;  // it leaves ModelUsage::recompute to who knows the memory

  bool trainable = false;
  std::string head;                   // "language_model", "value" or "policy+value", which is both
  int64_t experts = 0;                // of a layer, some of which its routers send a token to; 0: it is no mixture of experts
  int64_t route_bytes_per_token = 0;  // where they do, written down
  int64_t key_heads = 0;  // heads of keys and values, which ranks of a block that share a pass divide among them; 0: not known
  std::string sampled_alone;  // why ranks cannot sample from it together, which divide the same heads; empty: they can

  bool follows_iterations = false;  // how it is trained depends on [pipeline] iterations, as a learning rate that decays does
  std::optional<ValueSchedule> learning_rate;  // of the run, where it is trained
  std::vector<WeightGroup> groups;             // of its optimizer, and after them the rest; none: it treats all alike

  bool has_base = false;   // a language model whose training leaves the weights as they are and learns a change of them
  std::string base_of;     // the model whose weights without what was learned this one is; the other facts are then that model's
                           // too, but for memory of its own: the checks see to it. Empty: it has weights of its own
  std::string average_of;  // the model whose trained weights it is a moving average of, and shares the others of; likewise

  /// The model that is loaded before this one, whose weights it has or begins with. Empty: none.
  const std::string& made_from() const { return base_of.empty() ? average_of : base_of; }

  bool is_mixture() const { return experts > 0; }
  bool has_head(const std::string& wanted) const { return head == wanted || head == "policy+value"; }

  std::filesystem::path folder;  // with its tokenizer and chat template; empty: it has none

  std::string device = "cpu";  // where its weights are and what reads them computes: "cpu", or "cuda:N"
};

/// What a model holds; of what ranks have in common the part of this rank.
struct ModelBytes {
  int64_t weights = 0;    // live and published ones
  int64_t copies = 0;     // of weights and optimizer, to be saved, and older versions; not among the tensors that are counted
  int64_t gradients = 0;  // the most that were there at a time
  int64_t optimizer = 0;
  int64_t of_others = 0;  // what else is mapped here of what ranks have in common
};

/// What became of a version that a rank was to receive.
struct ReceivedVersion {
  PublishedVersion published = {};  // where it can be sampled from
  std::exception_ptr failure = {};  // why it cannot; null: it can
};
using VersionReceived = std::function<void(const ReceivedVersion& version)>;

/// A model of a run. The engine only needs to save it and to know its size; nodes know the concrete class.
///
/// A model that is trained is saved in two steps: take_snapshot() notes what training changes, write_snapshot() writes it. What
/// was copied is written while training goes on; what was not is written at once, while training waits. Never two snapshots at a
/// time. Only those that are updated are asked for snapshots.
class Model {
 public:
  virtual ~Model() = default;

  /// Called from any thread.
  virtual ModelBytes bytes() const { return {}; }

  /// Of a model that is updated, on the executor thread of who does: adds up the gradients of this rank's slots. True: there are
  /// some since the last call.
  virtual bool add_up_slots() { return false; }

  /// After that, where some rank has gradients, on several ranks: adds them up over all ranks. `done` is called on some thread
  /// when this rank has what it needs of the sum; see GradientGroup.
  virtual void add_up_ranks(const std::function<void()>& done) { done(); }

  /// After a step, which all ranks make or none does, on several ranks: brings the weights that each rank has stepped to all of
  /// them. `done` is called on some thread when this rank has all.
  virtual void bring_weights(const std::function<void()>& done) { done(); }

  /// Of a model that averages another one (ModelFacts::average_of), on the executor thread of who trains that: once after each
  /// point at which it may have made a step, when this rank has all weights that the step has left.
  virtual void follow() {}

  /// Of a model that this rank samples from and others train: nothing samples any more from the version whose memory `version` is
  /// to have. `done` is called once, on some thread: when `version` can be sampled from, here and on all ranks that do, or with
  /// what kept this rank from taking it, and then no later version comes either. Where they never publish it, as when the run
  /// fails, it is not called at all. In order of versions.
  virtual void receive_version(int64_t /*version*/, VersionReceived /*done*/) {}

  /// Of such a model, once before that: versions before this one do not come, since this rank has come into a run that goes on.
  virtual void begin_with_version(int64_t /*first*/) {}

  /// Of a model whose passes another rank leads (ModelUsage::passes), or that others ask for passes: computes with it what they
  /// ask for, on the calling thread. Waits for: these ranks. Ends when: they have dismissed this one. Throws what PassGroup does.
  virtual void assist(FileSystem& /*files*/) {}

  /// Of a model whose passes this rank leads, or asks others for: these are through. Once, when nothing is asked of the model any
  /// more.
  virtual void dismiss() {}

  /// Gets the memory for the copies, which may take seconds. Called once at the start of a run that is saved from copies, on
  /// another thread than those of nodes, and never beside the calls that follow.
  virtual void prepare_snapshot() {}

  /// Takes weights and optimizer of this moment, and older versions. With kNone nothing is allocated: the snapshot is what is
  /// live. Called on the executor thread of the node that updates the model, between its end of an iteration and the publication
  /// of the weights; or when no node runs.
  virtual void take_snapshot(VersionRange versions, CheckpointCopy copy) = 0;

  /// Writes the snapshot into `folder`, a new one that is the checkpoint's: `NAME/` is the model as a complete folder for others
  /// to load, what only a run that goes on needs lies beside it as `NAME.*`; other models may be written into it meanwhile. Of
  /// several ranks each writes its part, at the same time. The same bytes whether it was copied or not. Every file is on the disk
  /// on return. Called once after each take_snapshot(): on any thread after a copy, whose memory may be used again then, else at
  /// once on the same one. Throws UserError (disk full).
  virtual void write_snapshot(const std::filesystem::path& folder, FileSystem& files) = 0;

  /// Takes over what write_snapshot() wrote: afterwards the model is bit for bit what it was, and `versions` are published.
  /// Called before the run starts. Throws UserError naming file and tensor when something is missing or does not fit.
  virtual void restore(const std::filesystem::path& folder, VersionRange versions) = 0;
};

/// Of a frozen model whose passes ranks of a role of its own compute ([cluster.roles]): this rank asks them, and has its text
/// alone; or it is one of them, and answers.
enum class Forwarding { kNone, kAsks, kAnswers };

/// What a load must know of the plan.
struct ModelUsage {
  std::string name;
  uint64_t seed = 0;
  int64_t iterations = 0;        // of the run
  bool updated = false;          // some node trains it, or what it averages
  bool recompute = false;        // its backward computes activations again rather than keep them, if the facts leave that open
  bool read = false;             // some node computes with its live weights, or another model is its base
  ModelVersions versions;        // that there are beside the newest
  std::shared_ptr<Model> base;   // what facts.made_from() names, loaded before; null: none
  World world;                   // of the run, as those have it who schedule
  std::optional<World> holders;  // where passes are shared: the ranks that hold what is trained, with slots for all of them

  // Of ranks that compute its passes together, or for each other, and outlives it. Null: this rank does so alone.
  PassGroups* passes = nullptr;
  Forwarding forwarding = Forwarding::kNone;
  std::vector<int> peers;  // the ranks that it asks or answers then, of the run, as is its own number
  int own_rank = 0;
  int64_t sampling_ranks = 1;  // of these, the first ones, which sample from it together with some columns of it each
  int64_t expert_ranks = 1;    // likewise, with whole experts; a multiple of the others, or 1: those have columns of all experts
  GradientGroup* gradients = nullptr;    // that adds them over the ranks, and outlives it; null: there is one rank
  bool trained_alone = false;            // no other model is updated: what devices do for it has one order on all ranks
  bool shard_optimizer = false;          // each rank steps its own part of the weights
  CommonMemory* common = nullptr;        // that weights or versions of it lie in, and outlives it; null: this rank has its own
  bool sent = false;                     // this rank trains it, and others sample from it
  bool received = false;                 // the other way round
  std::vector<int> receivers;            // the ranks that get each version then
  Publications* publications = nullptr;  // between these ranks, and outlives it; null: neither

  /// The ranks that hold what is trained, for whose slots this one has gradients.
  World trained_by() const { return holders ? *holders : world.of_owners(); }

  /// Of those that compute passes together, how many sample from it together, with columns or experts.
  int64_t sampling_places() const { return std::max(sampling_ranks, expert_ranks); }
  bool samples_together() const { return sampling_places() > 1; }

  /// Whether it has live weights at all. One that is sampled from and nothing else has a published version alone, and so has one
  /// whose passes can read that (ModelFacts::reads_published). Not where a rank has a part of a version.
  bool has_live_weights(bool reads_published) const {
    if (forwarding != Forwarding::kNone) return forwarding == Forwarding::kAnswers;
    return updated || versions.readable == 0 || samples_together() || (read && !reads_published);
  }
};

/// How `[models.NAME]` tables are understood. One implementation a program; the engine's tests have a toy one.
class ModelType {
 public:
  virtual ~ModelType() = default;

  virtual const ParamTable& params() const = 0;

  /// Binds and looks at the folder without loading weights. Null when something was reported.
  virtual std::shared_ptr<const void> bind(const ModelSpec& spec, BindContext& context, ModelFacts& facts) const = 0;

  virtual std::shared_ptr<Model> load(const std::shared_ptr<const void>& params, const ModelUsage& usage) const = 0;
};

}  // namespace sluice::engine
