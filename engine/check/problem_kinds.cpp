#include "engine/check/problem_kinds.h"

#include <algorithm>
#include <array>

namespace sluice::engine {
namespace {

constexpr Severity kError = Severity::kError;
constexpr Severity kWarning = Severity::kWarning;

constexpr auto kKinds = std::to_array<ProblemKind>({
    // The text.
    {"file-unreadable", kError, "a pipeline file cannot be read, or has more than 1 MiB", "name a pipeline file that exists"},
    {"not-text", kError, "the file is not UTF-8", "save it with the encoding UTF-8"},
    {"toml-syntax", kError, "the text is not TOML", "mend it where the caret points"},
    {"written-twice", kError, "a key, a table or an element of an array is written twice", "keep one of the two"},
    {"extends-unusable", kError, "`extends` names no file", "`extends = \"FILE.toml\"`"},
    {"builtin-unknown", kError, "no pipeline that comes with the program has this name", "`rlhf-run pipelines` lists them"},
    {"extends-circle", kError, "a file extends itself, directly or by way of others", "remove one `extends` of the circle"},
    {"override-malformed", kError, "a `--set` is not `KEY=VALUE`, or sets `extends`", "`--set nodes.generate.max_new_tokens=64`"},
    {"nothing-to-override", kError, "a `--set` changes a node or model that is not there", "name one that is there"},
    {"nothing-to-remove", kError,
     "`= false` removes a node or model that was not inherited, or `--set KEY=` a key that no layer sets",
     "name one that is there"},
    // Tables, keys, values.
    {"missing-table", kError, "`[pipeline]` or `[budget]` is missing", "add it"},
    {"unknown-table", kError, "a table that no pipeline has", "correct its name; a node is a table `[nodes.NAME]`"},
    {"key-outside-table", kError, "a key stands above all tables", "move it into a table"},
    {"missing-key", kError, "a required key is missing", "add it"},
    {"unknown-key", kError, "a key that its table does not have", "correct its name, or remove it"},
    {"wrong-type", kError, "a value has another type than its key takes", "write what is expected"},
    {"empty-text", kError, "a text or path is empty", "write what is expected, or remove the key"},
    {"out-of-range", kError, "a number is not in the range of its key, or not finite", "take one of the range"},
    {"unknown-choice", kError, "a value is none of the choices of its key", "take one of the choices"},
    {"bad-name", kError, "the name of a pipeline, model, node, role or device is not allowed, or taken",
     "letters, digits, `_`, `-`"},
    {"path-missing", kError, "there is nothing at a path", "correct it: relative paths start at the folder of the file"},
    // Plugins.
    {"plugin-missing", kError, "there is no file where a plugin should be", "correct the path, or build it"},
    {"plugin-not-allowed", kError, "a plugin that nobody named to the program lies elsewhere than beside the pipeline file",
     "`--plugin FILE`, if you trust it"},
    {"plugin-not-loaded", kWarning, "what a plugin adds is not checked, because nothing but a run loads it unasked",
     "`--plugins`, if you trust it"},
    {"plugin-unusable", kError, "a plugin is none, cannot be loaded, or fails while it registers", "build it as a plugin"},
    {"plugin-of-another-build", kError, "a plugin was built for another version, or in another way", "rebuild it"},
    {"type-taken", kError, "a plugin adds a type whose name is taken", "give it another name, or load one of the two"},
    // Node types and their settings.
    {"node-without-type", kError, "a node has no type", "`type = \"...\"`"},
    {"unknown-node-type", kError, "a node type that the program and its plugins do not have", "correct it, or load its plugin"},
    {"unknown-component", kError, "an objective or other component that is not known", "correct it, or load its plugin"},
    {"setting-unusable", kError, "a node cannot work with a setting, alone or beside its others",
     "change it as the message says"},
    {"setting-without-effect", kError, "a setting changes nothing beside the others of its node",
     "remove it, or the one against it"},
    {"setting-doubtful", kWarning, "a setting works but is hardly what was meant", "look again"},
    {"settings-disagree", kError, "two nodes state a setting that must be alike differently", "the same value in both"},
    {"contract-unbounded", kError, "a node type does not bound the groups or tokens that it makes", "mend its contract"},
    // Data.
    {"data-unusable", kError, "a data file, or a row of it, is not what its node reads", "mend the row, or name its fields"},
    {"data-doubtful", kWarning, "data that works, but is hardly used as it was meant, such as prompts without the chat template",
     "say what is meant, as the message shows"},
    // Metrics.
    {"metric-recorded-twice", kError, "two nodes record metrics of one name",
     "`metrics_prefix` in one of the two, or another column where a scorer names its own"},
    {"metric-unusable", kError, "a node type declares a metric whose name is none, is there in two ways, or is the run's own",
     "mend its contract, or another parameter where that gives the name"},
    {"unknown-metric", kError, "`keep_best` or `stop_when` names a metric that no node records", "name one that is recorded"},
    {"stop-without-rule", kError, "`stop_when` says of no value that it ends the run, or of one that depends on timing",
     "`at_least`, `at_most` or `patience`, of a metric that repeats"},
    // The graph.
    {"unknown-input", kError, "`inputs` names something that is not a node", "name nodes"},
    {"input-itself", kError, "a node takes input from itself", "remove that input"},
    {"nodes-in-a-loop", kError, "nodes take input from each other in a loop", "take one of the inputs away"},
    {"node-without-inputs", kError, "a node that is no source has no inputs", "name the nodes whose columns it reads"},
    {"source-missing", kError, "no node is a source: nothing would ever start", "add one"},
    {"paths-meet", kError, "a node joins micro-batches of two sources", "take all inputs from one source"},
    {"nothing-to-measure", kError, "every source only measures", "take `every_iterations` away from one"},
    {"source-with-inputs", kError, "a source takes inputs", "remove `inputs`"},
    {"rollout-twice", kError, "a second rollout of one source", "give it a source of its own"},
    {"rollout-misplaced", kError, "a rollout does not take its groups from one source alone", "`inputs = [SOURCE]`"},
    {"past-rollout", kError, "a node takes groups from a source past its rollout", "take them from the rollout"},
    {"samples-missing", kError, "a source of prompts, and no rollout that makes samples of them", "add a rollout"},
    {"samples-twice", kError, "a source of whole samples, and a rollout", "take the rollout away"},
    // Columns.
    {"column-not-written", kError, "a node reads a column that nothing before it writes",
     "add a node that writes it, or name it"},
    {"column-mismatch", kError, "a column is read with another type or extent than it is written with", "name another column"},
    {"column-written-twice", kError, "two nodes write one column", "take one away, or name its column otherwise"},
    {"file-written-twice", kError, "two nodes write one file of the run folder", "give one another path"},
    {"path-outside", kError, "a path where a run would write outside of its folder, or over its own files",
     "a relative path without `..`; the command line may name another folder for checkpoints"},
    {"column-not-read", kWarning, "a node is of use, but one of its columns is never read", "read it where it was meant for"},
    {"node-without-effect", kWarning, "what a node makes reaches nothing that trains, publishes, writes or measures",
     "remove the node, or read its columns"},
    // Filters.
    {"filter-contract", kError, "a node type says of itself what no filter can be", "mend its contract"},
    {"filter-twice", kError, "two filters have dropped groups replaced", "`most_draws = 1` in one of the two"},
    {"filter-deadlock", kError, "a barrier in front of a filter that has dropped groups replaced: each waits for the other",
     "put the barrier after the filter"},
    {"filter-join", kError, "a node joins micro-batches that passed different filters", "take the columns through the filter"},
    {"too-few-samples", kError, "a node compares more samples of a prompt than there are", "more samples of a prompt"},
    // Models.
    {"unknown-model", kError, "a node names a model that the pipeline does not have", "add `[models.NAME]`"},
    {"model-folder-unusable", kError, "a model folder has no `config.json`, or one that is damaged or not supported",
     "name another folder"},
    {"model-head-mismatch", kError, "a node needs a model with another head", "`head` of the model, or name another model"},
    {"measuring-path-trains", kError, "a node trains a model on a path that only measures", "move it after another source"},
    {"model-frozen", kError, "a node trains a model that has no optimizer", "`optimizer = { ... }` of the model"},
    {"model-trained-twice", kError, "two nodes train one model", "keep one"},
    {"model-published-twice", kError, "two nodes publish one model", "keep one"},
    {"model-not-published", kError, "a model is sampled and trained, but its new weights are never published",
     "add a node of type `sync_weights`"},
    {"publisher-without-trainer", kError, "a node publishes a model that no node trains", "remove it"},
    {"publisher-too-early", kError, "a node publishes a model without waiting for its trainer", "`inputs = [TRAINER]`"},
    {"publisher-without-reader", kWarning, "a node publishes a model that no node samples from", "remove it"},
    {"model-read-while-trained", kError, "a node reads live weights but is not in front of their trainer",
     "name it in `inputs` of the trainer, or read a frozen copy"},
    {"reference-is-trained", kWarning, "what should be a fixed reference is a model that is trained", "read a frozen copy"},
    {"critic-not-trained", kWarning, "a critic is read, but nothing trains it", "name it as `critic` of the trainer"},
    {"model-without-base", kError, "`base_of` names a model that is trained as a whole, or has no weights of its own",
     "`lora` in that model, or `checkpoint` instead of `base_of`"},
    {"average-of-frozen", kError, "`ema` names a model that nothing trains", "name one that is trained, or `checkpoint` instead"},
    {"average-not-readable", kError, "a model with `ema` is sampled from, trained or published: it follows another one",
     "name the model that it averages"},
    {"model-unused", kWarning, "no node uses a model", "remove it"},
    {"optimizer-unused", kWarning, "a model has an optimizer, but no node trains it", "remove `optimizer`"},
    {"optimizer-without-effect", kWarning, "a learning rate of 0: training changes no weight", "set `learning_rate`"},
    {"vocabularies-differ", kError, "models that work on the same tokens have tokenizers that differ",
     "checkpoints of one family"},
    {"warmup-exceeds-run", kWarning, "`warmup` is not below `iterations`, or `over`: what it rises to is never reached",
     "a shorter warm-up, or a share of the run"},
    // Versions, places and times.
    {"lag-without-training", kError, "`policy_lag` without a model that is sampled and trained", "remove `policy_lag`"},
    {"lag-exceeds-run", kWarning, "`policy_lag` is not below `iterations`: all samples come from the first weights",
     "lower `policy_lag`"},
    {"lag-gains-nothing", kWarning, "`policy_lag` while rollout and trainer share an executor",
     "`on = \"cpu:1\"` for one of them"},
    {"off-policy-uncorrected", kWarning, "samples of older weights, and an objective that does not correct for that",
     "an objective with a ratio, such as `ppo_clip`, or one step on samples of the current weights"},
    {"on-policy-impossible", kError, "`on_policy = \"exact\"` where samples are of older weights or sampled with other sums",
     "`on_policy = \"measured\"`, or what the message names"},
    {"never-measured", kWarning, "a path measures the weights before training, and never those that the run makes",
     "a second iteration, or measure after it instead"},
    {"checkpoint-without-effect", kWarning, "`every_iterations` saves nothing that is not saved anyway",
     "lower it, or remove it"},
    {"executor-unknown", kError, "`on` names no executor", "`\"cpu\"` or `\"cpu:N\"`"},
    {"executor-unavailable", kError, "`on` names a device that no model of the node is on",
     "`device` of the model, or leave `on` out"},
    {"device-unknown", kError, "`device` of a model, or the name of a table in `[devices]`, is none",
     "`\"cpu\"` or `\"cuda:N\"`"},
    {"device-unavailable", kWarning, "a model is on a device that this machine or this build lacks; `run` refuses it",
     "run it where the device is, or `\"cpu\"`"},
    {"weights-unusable", kWarning,
     "the files with the weights of a model are missing, damaged or of another model; `run` refuses it",
     "the whole folder, or `init = \"random\"`"},
    {"tokenizer-unusable", kWarning, "a model is sampled from, and its tokenizer is missing or cannot be read; `run` refuses it",
     "the whole folder"},
    {"executor-of-source", kError, "`on` of a source that has a rollout", "write it in the rollout"},
    {"executors-exceed-cores", kError, "more executors than cores", "fewer executors, or more `cores`"},
    {"executors-share-cores", kWarning, "more executors than cores that the process may use", "fewer executors"},
    {"cores-exceed-machine", kWarning, "`cores` is more than the process may use", "lower it, or remove it"},
    {"slots-not-divided", kError, "`slots` that the ranks of the run cannot share evenly", "`slots` that they divide"},
    {"roles-without-ranks", kError, "the roles of `[cluster]` have another number of ranks than the run",
     "`rlhf-run launch` without `--ranks`, or other `ranks`"},
    {"role-unknown", kError, "`on` names a role that `[cluster]` does not have", "one of `[cluster.roles.NAME]`"},
    {"node-without-role", kError, "a node is on no role, though `[cluster]` has some", "`on = \"ROLE\"`"},
    {"role-misplaced", kError, "a node is on another role than those that do the like, or one role has all nodes",
     "one role for what samples, one for the rest; what only reads frozen models may have its own"},
    {"role-unused", kError, "no node is on a role", "remove it, or name it in `on`"},
    // Tokens.
    {"budget-not-divided", kError, "sources do not say which share of the budget is whose",
     "`tokens_in_flight` of each source but one"},
    {"budget-stalls", kError, "the run could stall: tokens are held back that only new tokens could release",
     "the smallest `tokens_in_flight` that works is named"},
    {"group-exceeds-micro-batch", kError, "a group may be larger than a micro-batch", "raise `micro_batch_tokens`"},
    {"micro-batch-exceeds-budget", kWarning,
     "`micro_batch_tokens` above `tokens_in_flight`: no micro-batch can become that large", "lower `micro_batch_tokens`"},
    {"sample-exceeds-pass", kError, "a sample may be longer than what a model may compute at once", "raise `pass_tokens`"},
    {"sample-too-long", kError, "samples may be longer than the positions of a model", "shorten prompts or responses"},
    // Bytes.
    {"memory-too-small", kError, "the run does not fit into the memory of the machine", "lower what the message names"},
    {"memory-tight", kWarning, "the run needs more than 90 % of the memory of the machine", "lower what the message names"},
});

}  // namespace

std::span<const ProblemKind> problem_kinds() { return kKinds; }

const ProblemKind* find_problem_kind(std::string_view id) {
  const auto found = std::find_if(kKinds.begin(), kKinds.end(), [&](const ProblemKind& kind) { return id == kind.id; });
  return found == kKinds.end() ? nullptr : &*found;
}

std::string problem_kinds_markdown() {
  std::string text = "| kind | severity | what is wrong | what to do |\n|---|---|---|---|\n";
  for (const ProblemKind& kind : kKinds) {
    text +=
        std::string("| `") + kind.id + "` | " + severity_name(kind.severity) + " | " + kind.says + " | " + kind.remedy + " |\n";
  }
  return text;
}

}  // namespace sluice::engine
