#include "cli/track/trackers.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/files/user_path.h"
#include "base/process/program_path.h"
#include "base/text/shell_word.h"
#include "base/text/strings.h"

extern char** environ;

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

using Clock = Subprocess::Clock;

constexpr auto kLook = std::chrono::milliseconds(100);
constexpr auto kSilently = std::chrono::seconds(1);      // the end of the run waits so long without a word
constexpr auto kGrace = std::chrono::milliseconds(500);  // to say who was not told all, and for clients to end
constexpr std::string_view kNote = "note: ";  // before a line that is no warning; see python/sluice/trackers/__main__.py
constexpr char kMain[] = "import sys; sys.path[0] = sys.argv.pop(1); from sluice.trackers.__main__ import main; main()";

// The folder of the package sluice: of an install tree and of a build tree, or that of a wheel, which is the whole tree.
fs::path python_folder() {
  const fs::path share = share_folder();
  for (const fs::path& folder : {share / "python", share.parent_path().parent_path().parent_path()}) {
    if (is_there(folder / "sluice/trackers/__main__.py")) return folder;
  }
  throw UserError("the Python package sluice does not lie beside the program", "install it with cmake --install, or as a wheel");
}

std::vector<std::string> environment_of_trackers() {
  std::vector<std::string> all{"PYTHONDONTWRITEBYTECODE=1"};
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

// The interpreter that a wheel was installed for, so that clients beside it are found.
std::string interpreter() {
  const std::string named = environment_value("SLUICE_PYTHON");
  return named.empty() ? "python3" : named;
}

SubprocessOptions process_options(const Trackers::Options& options) {
  SubprocessOptions process;
  process.arguments = {interpreter(), "-c",           kMain, python_folder().string(), options.run_folder.string(),
                       "--project",   options.project};
  if (options.afterwards) process.arguments.emplace_back("--afterwards");
  process.arguments.emplace_back("--to");
  process.arguments.insert(process.arguments.end(), options.names.begin(), options.names.end());
  process.environment = environment_of_trackers();
  return process;
}

std::string remedy(const Trackers::Options& options) {
  return "; the rest is told with: rlhf-run track " + shell_word(options.run_folder.string()) + " --to " +
         join(options.names, " --to ");
}

// The last line that it wrote to stderr, which says of an exception what it is.
std::string last_line(const std::string& errors) {
  const std::string_view text = trim(errors);
  return text.empty() ? std::string() : ": " + std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace

Trackers::Trackers(Options options) : options_(std::move(options)) {
  start();
  if (process_) thread_ = std::thread([this] { listen(); });
}

Trackers::~Trackers() {
  dropped_ = true;
  if (thread_.joinable()) thread_.join();
}

void Trackers::start() {
  try {
    process_ = std::make_unique<Subprocess>(process_options(options_));
  } catch (const UserError& error) {
    options_.warn("nobody tells " + join(options_.names, ", ") + " of this run: " + error.message());
  }
}

void Trackers::finish(std::optional<std::chrono::duration<double>> most, const std::function<bool()>& is_to_end) {
  over_ = true;
  const auto begin = Clock::now();
  bool told = !most;
  while (thread_.joinable() && !ended_) {
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if ((most && waited > *most) || (is_to_end && is_to_end())) break;
    if (waited > kSilently && !std::exchange(told, true)) {
      options_.note("waiting for " + join(options_.names, ", ") + ", at most " + human_seconds(most->count()) +
                    "; Ctrl-C ends that");
    }
    std::this_thread::sleep_for(kLook / 4);
  }
  dropped_ = true;
  if (thread_.joinable()) thread_.join();
}

void Trackers::listen() {
  try {
    tell_until_the_end();
  } catch (const std::exception& error) {
    options_.warn("nobody tells " + join(options_.names, ", ") + " of this run any longer: " + error.what());
  }
  ended_ = true;
}

void Trackers::tell_until_the_end() {
  Subprocess* const processes[] = {process_.get()};
  bool told = false;
  while (!process_->ended() && !dropped_) {
    if (over_ && !std::exchange(told, true)) process_->end_input();
    Subprocess::exchange(processes, Clock::now() + kLook);
    take_lines();
  }
  take_lines();
  const std::string names = join(options_.names, ", ");
  if (process_->ended()) {
    if (process_->succeeded()) return;
    options_.warn("the process that tells " + names + " of this run " + process_->how_it_ended() + last_line(process_->errors()) +
                  remedy(options_));
    return;
  }
  process_->kill(kGrace);
  if (!over_) return;
  std::optional<std::string> line = process_->take_line();
  if (!line) options_.warn("the end of the run does not wait longer for " + names + remedy(options_));
  for (; line; line = process_->take_line()) pass_on(*line);
}

void Trackers::take_lines() {
  while (const auto line = process_->take_line()) pass_on(*line);
}

void Trackers::pass_on(const std::string& line) const {
  if (line.starts_with(kNote))
    options_.note(line.substr(kNote.size()));
  else
    options_.warn(line);
}

}  // namespace sluice::cli
