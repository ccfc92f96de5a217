#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sluice::cli {

class Command;

/// What the user says of plugins: a pipeline file may come from a stranger, and a library that is loaded does what it likes.
struct PluginArguments {
  std::vector<std::string> files;  // --plugin: these are loaded, also where the pipeline does not name them
  bool all = false;                // --plugins: whatever the pipeline names is loaded
};

/// What every subcommand that takes a pipeline takes.
struct PipelineArguments {
  std::filesystem::path file;
  std::vector<std::string> sets;  // KEY=VALUE
  int ranks = 0;                  // that would run it, or do; 0: as many as its roles have, or one
  bool all_data = false;          // look at every row of the data, not only at the first of each file
  PluginArguments plugins = {};
};

// One subcommand each; each returns the exit code and throws UserError for what is found wrong before anything runs.

struct RunArguments {
  PipelineArguments pipeline;
  std::filesystem::path run_folder;     // empty: runs/NAME-TIME, or runs/NAME where the run may go on
  bool may_go_on = false;               // with what is in the run folder, if there is something
  bool accept_changes = false;          // of the pipeline since then, also those that change results
  std::int64_t show_samples_every = 0;  // two sample texts of every so many iterations; 0: none
};
/// Where the pipeline has roles, and this process is none of their ranks, it launches them.
int run_pipeline(const RunArguments& arguments);

struct LaunchArguments {
  RunArguments run;
  int ranks = 0;
  int port = 0;      // of 127.0.0.1, where the ranks meet; 0: one that is free
  int restarts = 3;  // how often each rank of an elastic role is started again
};
/// Runs a pipeline in several processes of this machine, each of them `rlhf-run run`. The exit code is that of the first that
/// ended badly.
int launch_pipeline(const LaunchArguments& arguments);

/// Runs of one pipeline with several values of its keys, and seeds.
struct SweepArguments {
  RunArguments run;                 // a set may have several values (cli/sweep_grid.h); the run folder is that of the sweep
  std::vector<std::int64_t> seeds;  // none: that of the pipeline
  bool goes_on = false;             // with what is in that folder, which says all of the pipeline but its plugins
  int parallel = 1;                 // so many runs at a time
  bool dry_run = false;             // only say what would be run
};
/// Runs all that are not finished, each by `rlhf-run run` in a folder of its own, and prints their table. The exit code is that
/// of the first that ended badly.
int sweep_pipeline(const SweepArguments& arguments);

struct SweepTableArguments {
  std::filesystem::path folder;      // of a sweep, which may go on
  std::vector<std::string> metrics;  // none: those that matter
  std::string best;                  // "highest" or "lowest", of the first one; empty: by its name
  std::string format = "text";       // or "json" or "csv"
};
/// Prints a row for each combination: mean and standard deviation over its finished runs.
int print_sweep_table(const SweepTableArguments& arguments);

struct ResumeArguments {
  std::filesystem::path run_folder;
  std::optional<long long> from;  // a checkpoint; nothing: the newest that is intact
  std::vector<std::string> sets;  // KEY=VALUE
  PluginArguments plugins = {};
  bool accept_changes = false;
  std::int64_t show_samples_every = 0;  // as in RunArguments
};
/// Goes on with a run, by the pipeline that its folder keeps. 1 when no checkpoint is intact. Where that has roles, and this is
/// none of their ranks, it launches them.
int resume_run(const ResumeArguments& arguments);

/// The same on as many ranks as the roles have, each of them `rlhf-run resume`.
int launch_again(const ResumeArguments& arguments);

/// Whether the pipeline has roles, and this process is none of their ranks. One that cannot be read has none.
bool is_to_be_launched(const std::filesystem::path& file, const std::vector<std::string>& sets);

/// What is said of the checkpoints of a run folder. `iterations`: only that one.
struct CheckpointsArguments {
  std::filesystem::path run_folder;
  std::optional<long long> iterations;
  std::string format = "text";
  std::optional<long long> keep_last;  // prune; those that are not there: what the run's [checkpoint] says
  std::optional<std::string> keep_best;
  std::optional<std::string> best;              // "highest" or "lowest"
  std::optional<std::filesystem::path> folder;  // prune; [checkpoint] folder, where they lie outside of the run folder
  bool dry_run = false;
  std::string model;  // export; empty: the only one
  std::filesystem::path target;
  std::string dtype;       // empty: that of the files
  std::string save;        // of a model with adapters "merged" or "adapter"; empty: all that the checkpoint has
  std::string license;     // an identifier of the Hub; empty: that of the base model
  std::string base_model;  // an id of the Hub; empty: that of the folder that was trained, if it is the Hub's
};
/// One line each, or JSON: iterations, when it was saved, a metric, size, intact or what is damaged.
int list_checkpoints(const CheckpointsArguments& arguments);
/// Reads every byte. 1 when something is damaged; it is named by file and tensor.
int verify_checkpoints(const CheckpointsArguments& arguments);
/// Removes what need not be kept. Damaged ones stay, and are named.
int prune_checkpoints(const CheckpointsArguments& arguments);
/// Writes one model of a checkpoint as a Hugging Face folder, with a model card and generation_config.json.
int export_checkpoint(const CheckpointsArguments& arguments);

struct ReportArguments {
  std::vector<std::filesystem::path> run_folders;
  std::filesystem::path output;  // empty: standard output
  std::uint16_t port = 0;        // of 127.0.0.1, to serve at; 0: one that is free
};
/// Writes one HTML file about the runs.
int report_runs(const ReportArguments& arguments);
/// Serves a page that follows them, until Ctrl-C or SIGTERM; prints its address.
int serve_report(const ReportArguments& arguments);

struct SamplesArguments {
  std::filesystem::path run_folder;
  std::string node;        // of type write_jsonl; empty: the first
  std::string iteration;   // a number, or "all"; empty: the latest
  std::string prompt;      // only of prompts with this text; empty: of all
  std::string sort;        // a field, or "length"; empty: as they were recorded, or by score for best and worst
  std::int64_t best = 0;   // so many with the highest; at most one of these three is above 0
  std::int64_t worst = 0;  // with the lowest
  std::int64_t samples = 0;
  bool samples_given = false;  // 0 of them: all
  std::string tokens;          // what they are coloured by: "advantage", "kl", "probability", "none"; empty: what there is
  std::string format = "text";
};
/// Prints samples that a run has recorded.
int show_samples(const SamplesArguments& arguments);

struct TrackArguments {
  std::filesystem::path run_folder;
  std::vector<std::string> trackers;
  std::string project;  // empty: that of the run
};
/// Tells trackers of a run what they do not know of it yet. 1 where one could not be told.
int track_run(const TrackArguments& arguments);

int validate_pipeline(const PipelineArguments& arguments, const std::string& format);
/// `format`: "dot" or "mermaid". `columns`: "read" or "all", see engine/text/graph_text.h.
int print_graph(const PipelineArguments& arguments, const std::string& format, const std::string& columns);
int print_plan(const PipelineArguments& arguments, const std::string& format, bool config);
int plot_plan(const PipelineArguments& arguments, const std::string& format);
/// What the pipeline needs of memory, and with which changes it fits. `format`: "text" or "json". Throws UserError where none
/// does.
int fit_pipeline(const PipelineArguments& arguments, const std::string& format);
/// `format`: "text", "json" or "markdown".
int list_nodes(const std::vector<std::string>& plugins, const std::string& format);
/// Prints the name of each pipeline that comes with the program, and the first clause of its first comment.
int list_pipelines();
/// `format`: "text" or "markdown".
int list_problem_kinds(const std::string& format);
int describe_type(const std::string& type, const std::vector<std::string>& plugins);
/// Starts the tool servers that a pipeline names, and prints what tools they have, or writes it to `output`.
int write_tools(const PipelineArguments& arguments, const std::filesystem::path& output);
/// Prints the JSON Schema of pipeline files (cli/pipeline_schema.h), or writes it to `output`.
int print_schema(const std::vector<std::string>& plugins, const std::filesystem::path& output);

struct InitArguments {
  std::string kind;                        // "grpo", "ppo", "sft", "dpo" or "reward"
  std::string model;                       // a folder, or the id of a model of the Hub
  std::string data;                        // a file, folder or pattern of JSON lines
  std::string prompt_field, answer_field;  // empty: looked for
  std::filesystem::path output;            // empty: standard output
  double memory_gib = 0;                   // 0: of this machine
  bool force = false;                      // also where there is a file
};
/// Writes a pipeline for this model and these data, that fits into this machine, and says on stderr what was chosen and why.
int init_pipeline(const InitArguments& arguments);

struct SimulateArguments {
  PipelineArguments pipeline;
  std::vector<std::string> what_ifs;    // KEY=VALUE or several, each a variant of its own
  std::filesystem::path costs;          // a run folder or a file; empty: estimated
  double gflops = 20;                   // of a core, for the estimate
  std::optional<double> guesses_right;  // of tokens that are guessed; none: as it was measured
  long long iterations = 0;             // 0: what the pipeline says
  std::filesystem::path trace;          // empty: none
  std::string format = "text";
};
/// Runs a pipeline on a virtual clock. 1 when a variant would stall.
int simulate_pipeline(const SimulateArguments& arguments);

/// Shows the run in `folder` on the terminal until it ends; once, when asked to, without a terminal and when it has ended.
int show_top(const std::filesystem::path& folder, bool once);
int try_one(const std::string& what, const std::vector<std::string>& sets, const std::string& preset,
            const std::vector<std::string>& plugins);

/// Reads JSON strings, one a line; prints their token ids.
int model_tokenize(const std::filesystem::path& folder, bool add_special);
/// Reads arrays of ids, one a line; prints the text as a JSON string.
int model_detokenize(const std::filesystem::path& folder);
/// Prints what the folder holds, as text or as one JSON object.
int model_info(const std::filesystem::path& folder, bool json);
/// Reads every tensor: headers, names, shapes, checksums, finite values. Prints a line a problem and returns 1, or what was
/// verified.
int model_verify(const std::filesystem::path& folder);
/// Reads arrays of ids, one a line; prints the log-probability of each id after the first, given those before it.
/// dtype: float32 or bfloat16, of the weights.
int model_logprobs(const std::filesystem::path& folder, const std::string& dtype);

/// How `model sample` and `model chat` draw tokens.
struct SamplingArguments {
  double temperature = 1.0;
  long long top_k = 0;
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  long long max_new_tokens = 0;   // 0: sample 256, chat 1024; or what the model has room for
  std::string dtype = "float32";  // or "bfloat16": what products and the KV cache are in
  unsigned long long seed = 0;
};

struct SampleArguments {
  std::filesystem::path folder;
  SamplingArguments sampling;
  std::string prompt;             // empty: standard input, unless there are `prompts`
  std::filesystem::path prompts;  // a file, folder or pattern of rows; empty: one prompt
  std::string prompt_field = "prompt";
  std::filesystem::path output;  // empty: standard output
  long long samples = 1;         // of each prompt
  bool chat = false;             // a prompt is what a user says, in the folder's chat template
  bool json = false;             // one object a line instead of the text
  bool tokens = false;           // in those objects, ids and log-probabilities too
};
/// Prints samples in order, each as it grows; or writes one JSON object for each.
int model_sample(const SampleArguments& arguments);

struct ChatArguments {
  std::filesystem::path folder;
  std::filesystem::path template_file;  // empty: the folder's own
  SamplingArguments sampling;
  std::string system;     // empty: what the template says without one
  long long context = 0;  // tokens of the conversation; 0: 8192, or what the model has room for
  bool json = false;      // one object for each answer instead of its text
};
/// Talks with a model: a turn is a line of standard input, its answer is printed as it grows. 1 where a turn got no answer.
int model_chat(const ChatArguments& arguments);

struct RenderArguments {
  std::filesystem::path folder;
  std::filesystem::path template_file;  // empty: the folder's own
  bool generation_prompt = true;        // where the input does not say
  bool mask = false;
};
/// Reads conversations, one a line (or one over several lines): an array of messages, or an object with "messages", "tools", ...
/// Prints the text that the chat template makes of each as a JSON string; with `mask` {"text", "assistant": [[begin, end], ...]}.
int model_render(const RenderArguments& arguments);

/// Prints the script that completes the words of `program` in a shell: "bash", "zsh" or "fish".
int print_completion(const Command& program, const std::string& shell);

}  // namespace sluice::cli
