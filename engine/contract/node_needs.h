#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/contract/columns/column.h"
#include "engine/contract/columns/text_check.h"
#include "engine/contract/params/scheduled_number.h"
#include "engine/contract/world/metric_spec.h"

namespace sluice::engine {

/// How a node uses a model.
enum class ModelUse {
  kReads,      // its live weights; a source: its text alone, tokenizer and chat template
  kSamples,    // its published weights
  kUpdates,    // trains it
  kAverages,   // trains the model that it is a moving average of; a check notes it, no contract says it
  kPublishes,  // makes the live weights the next published version
};

const char* name_of(ModelUse use);

/// What a node works on at once. A node of iteration scope is a barrier: nothing leaves before everything is in.
enum class Scope { kMicroBatch, kIteration };

struct ModelNeed {
  std::string param;  // the key that names the model
  std::string model;  // the name that was given
  ModelUse use = ModelUse::kReads;
  std::string head;             // "language_model" or "value"; empty: any
  bool expects_frozen = false;  // it works, but hardly as meant, if some node trains the model
};

/// A file of the run folder that a node writes.
struct FileNeed {
  std::string param;  // the key that names the file
  std::string path;   // relative to the run folder
};

/// Columns of which a node reads the first that some node before it writes.
struct ReadsChoice {
  std::vector<ColumnSpec> columns;
  bool required = false;  // one of them must be there
};

/// Which prompts a rollout takes. Others end the run when they are drawn, so a source tells of them before.
struct PromptLimit {
  int64_t tokens = 0;               // the longest; an empty one it never takes
  bool leaves_out_longer = false;   // and the run goes on
  std::optional<bool> add_special;  // whether the tokenizer adds its tokens; unset: but to a conversation, which has them
  // The plan fills these in: the rollout, and the model that it samples with the folder of its tokenizer.
  std::string node, model;
  std::filesystem::path folder;
};

/// A contract with given parameters: what the checks and the plan work on.
struct NodeNeeds {
  std::vector<ColumnSpec> reads;
  std::vector<ReadsChoice> choices;    // the checks settle them: what is read joins `reads`, and MicroBatch::has() tells it
  std::vector<std::string> reads_any;  // columns of whatever type their writers give them; likewise, see MicroBatch::column()
  std::vector<ColumnSpec> writes;
  std::set<std::string> by_products;  // of what it writes: columns that may well stay unread
  std::vector<ModelNeed> models;
  Scope scope = Scope::kMicroBatch;
  std::string scope_reason;          // why it is a barrier: `whiten = "iteration"`
  int64_t groups_per_iteration = 0;  // sources
  int64_t samples_per_group = 0;     // sources and rollouts, whichever makes the samples
  int64_t worst_sample_tokens = 0;   // likewise: prompt and response; of others where they compute longer ones than are made
  int64_t least_sample_tokens = 1;   // the least credit that a sample is admitted with
  int64_t on_demand_tokens = 0;      // rollouts: likewise where credit is taken on demand; 0: it takes the worst case at once
  int64_t shared_prompt_tokens = 0;  // rollouts: the longest prompt, if its KV blocks are stored once for a group; else 0
  std::optional<PromptLimit> prompt_limit;  // rollouts
  int64_t least_samples = 1;                // of a group: with fewer the node has nothing to compare
  int64_t side_samples = 0;     // rollouts: samples that are made beside those of each group and do not travel with it, such
                                // as a baseline; they take credit like the others, until they end
  bool drops_groups = false;    // a filter: groups that it drops do not reach the nodes after it
  int64_t most_draws = 1;       // filters: groups drawn in an iteration are at most so many times groups_per_iteration;
                                // above 1 what is dropped is replaced until groups_per_iteration groups were kept
  double oversample = 1;        // filters: so many times the groups that are still missing are drawn in each round
  int64_t step_tokens = 0;      // rollouts: the most tokens that one step works on
  int64_t running_samples = 0;  // rollouts: the most samples that run at once; 0: only their tokens limit them
  std::map<std::string, int64_t> string_bytes;  // of string columns it writes: the most bytes of one entry's text
  std::vector<TextCheck> text_checks;           // of string columns it reads
  std::vector<FileNeed> files;                  // of the run folder, that it writes
  std::vector<MetricSpec> metrics;              // all that it may record
  std::vector<std::string> totals;              // likewise add up over all ranks; see Totals
  int64_t steps = 1;                            // barriers: calls of gather() and process_iteration() in an iteration
  // Trainers: the key of the setting by which samples of older weights than those that are trained would give wrong gradients,
  // such as an objective without a ratio. Empty: it corrects for them.
  std::string uncorrected_by;
  // Trainers: the key of the setting that demands samples of the very weights that are trained, and log-probabilities that are
  // the same bits when they are computed again. Empty: nothing is demanded.
  std::string exact_by;
  // Nodes that write or read where the routers of their first model sent the tokens of a sample: the key of the setting, and the
  // column, of strings, which holds ModelFacts::route_bytes_per_token for each token. Empty: they do not.
  std::string routes_by, routes_column;
  // Settings that all nodes which state them must have alike, in every iteration, such as the temperature.
  std::map<std::string, ScheduledNumber> must_agree;
  std::vector<NamedSchedule> schedules;  // its scheduled parameters
};

}  // namespace sluice::engine
