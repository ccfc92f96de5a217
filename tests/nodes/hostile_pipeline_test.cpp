#include <fcntl.h>
#include <gmock/gmock.h>

#include <mutex>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/numbers/random.h"
#include "base/text/strings.h"
#include "dsl/parse.h"
#include "engine/check/check.h"
#include "engine/plan/plan.h"
#include "engine/run/run.h"
#include "nodes/builtin.h"
#include "nodes/columns/columns.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/temporary_folder.h"

// What a stranger's pipeline file lets a run write: nothing outside of the run folder, whatever paths it names, and whatever
// links the folder has when the run begins.
namespace sluice::nodes::hostile_pipeline_test {
namespace {

namespace fs = std::filesystem;

// Notes every place that is changed, links followed as the system follows them.
class NotingFileSystem final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  int open(const fs::path& path, int flags) override {
    const bool reads = (flags & O_ACCMODE) == O_RDONLY && (flags & O_CREAT) == 0;
    if (!reads) note((flags & O_NOFOLLOW) != 0 ? place_of(path) : fs::weakly_canonical(path));
    return ForwardingFileSystem::open(path, flags);
  }
  int sync(int) override { return 0; }
  int rename(const fs::path& from, const fs::path& to) override {
    return note(place_of(from)), note(place_of(to)), ForwardingFileSystem::rename(from, to);
  }
  int exchange(const fs::path& one, const fs::path& other) override {
    return note(place_of(one)), note(place_of(other)), ForwardingFileSystem::exchange(one, other);
  }
  int make_folder(const fs::path& path) override { return note(place_of(path)), ForwardingFileSystem::make_folder(path); }
  int make_link(const fs::path& target, const fs::path& path) override {
    return note(place_of(path)), ForwardingFileSystem::make_link(target, path);
  }
  int remove_file(const fs::path& path) override { return note(place_of(path)), ForwardingFileSystem::remove_file(path); }
  int remove_folder(const fs::path& path) override { return note(place_of(path)), ForwardingFileSystem::remove_folder(path); }

  std::set<fs::path> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(places_, {});
  }

 private:
  // Of the name itself: the folders on the way to it are followed, it is not.
  static fs::path place_of(const fs::path& path) { return fs::weakly_canonical(path.parent_path()) / path.filename(); }

  void note(const fs::path& place) {
    const std::lock_guard lock(mutex_);
    places_.insert(place);
  }

  std::mutex mutex_;
  std::set<fs::path> places_;
};

struct LinesParams {
  int64_t groups_per_iteration = 2;
};

// A source that makes its samples itself, so that a run needs no model.
class Lines final : public engine::Source {
 public:
  static void describe(engine::Contract<LinesParams>& c) {
    c.type("lines", "samples of one text");
    c.param("groups_per_iteration", &LinesParams::groups_per_iteration).at_least(1).doc("groups");
    c.writes(columns::kPrompt, columns::kResponse);
    c.needs([](const LinesParams& params, engine::NodeNeeds& needs) {
      needs.groups_per_iteration = params.groups_per_iteration;
      needs.samples_per_group = 1;
      needs.worst_sample_tokens = 2;
      needs.string_bytes = {{"prompt", 8}, {"response", 8}};
    });
  }
  explicit Lines(const LinesParams&) {}

  bool next_group(engine::Group& group) override {
    group.layout.add_sample(2, 1);
    group.layout.end_group();
    group.write(columns::kPrompt)[0] = "question";
    group.write(columns::kResponse)[0] = "answer";
    return true;
  }
};

class HostilePipelines : public ::testing::Test {
 protected:
  HostilePipelines() {
    register_builtin(registry_);
    registry_.add<Lines>();
    fs::create_directories(outside_ / "folder");
    folder_.write("outside/file", "precious");
    folder_.write("outside/folder/file", "precious");
  }

  template <class T>
  const T& any(const std::vector<T>& choices) {
    return choices[random_.below(choices.size())];
  }

  std::string any_part() {
    return any<std::string>({"samples.jsonl",
                             "texts",
                             "..",
                             ".",
                             "",
                             "out",
                             "way",
                             "log",
                             "metrics.jsonl",
                             "pipeline.toml",
                             "trace.json",
                             "trace.json.tmp",
                             "status.json",
                             "status.json.tmp",
                             "memory.json",
                             "lock",
                             "checkpoint",
                             "checkpoints",
                             "1",
                             "manifest.json",
                             "events.out.tfevents.1.h.2",
                             "a\nb",
                             std::string("a\0b", 3),
                             "\x1b[2J",
                             "~",
                             "$HOME",
                             "file",
                             "folder",
                             "C:\\x",
                             std::string(300, 'a'),
                             "größe"});
  }

  std::string any_path() {
    if (random_.below(8) == 0) return (outside_ / any<std::string>({"file", "new", "folder/file", "folder/new"})).string();
    std::string path = random_.below(6) == 0 ? "/" : "";
    for (size_t parts = 1 + random_.below(4); parts > 0; --parts) path += any_part() + (parts > 1 ? "/" : "");
    return path;
  }

  // Half of the files keep to the rules but for one thing, so that many get as far as running.
  std::string any_pipeline() {
    const auto path = [&] {
      return random_.below(2) == 0 ? any<std::string>({"samples.jsonl", "way/x", "texts/a.jsonl", "log"}) : any_path();
    };
    std::string text = "[pipeline]\niterations = 1\n";
    if (random_.below(6) == 0) text += "name = " + sluice::quoted(any_path()) + "\n";
    text += "[budget]\ntokens_in_flight = 64\nmicro_batch_tokens = 8\n";
    if (random_.below(5) == 0) text += "[checkpoint]\nfolder = " + sluice::quoted(any_path()) + "\n";
    const std::string node = random_.below(10) == 0 ? sluice::quoted(any_path()) : "sink";
    text += "[nodes.lines]\ntype = \"lines\"\n[nodes." + node +
            "]\ntype = \"write_jsonl\"\ninputs = [\"lines\"]\npath = " + sluice::quoted(path()) + "\nfields = [\"prompt\"]\n";
    if (random_.below(3) == 0) {
      text += "[nodes.second]\ntype = \"write_jsonl\"\ninputs = [\"lines\"]\nfields = [\"prompt\"]\npath = " +
              sluice::quoted(path()) + "\n";
    }
    return text;
  }

  // A run folder with some links that lead outside, under names that a run or a node uses.
  fs::path any_run_folder(int number) {
    const fs::path run = folder_.path() / ("run-" + std::to_string(number));
    fs::create_directory(run);
    for (const char* name : {"way", "log", "texts", "checkpoints", "checkpoint", "metrics.jsonl", "trace.json", "status.json",
                             "status.json.tmp", "memory.json", "memory.json.tmp", "costs.json.tmp", "samples.jsonl"}) {
      if (random_.below(16) != 0) continue;
      fs::create_symlink(outside_ / any<std::string>({"file", "folder", "new", "folder/new"}), run / name);
    }
    return run;
  }

  void expect_nothing_outside(const fs::path& run, const std::string& text) {
    const fs::path inside = fs::canonical(run);
    for (const fs::path& place : files_.take()) {
      const bool is_inside = std::mismatch(inside.begin(), inside.end(), place.begin(), place.end()).first == inside.end();
      EXPECT_TRUE(is_inside) << place << " was written by\n" << text;
    }
    EXPECT_EQ(read_file(outside_ / "file"), "precious") << text;
    EXPECT_EQ(read_file(outside_ / "folder/file"), "precious") << text;
    EXPECT_EQ(entries_of(outside_).size() + entries_of(outside_ / "folder").size(), 3u) << text;
  }

  engine::Registry registry_;
  RandomStream random_{7, 1};
  const TemporaryFolder folder_;
  const fs::path outside_ = folder_.path() / "outside";
  NotingFileSystem files_;
};

TEST_F(HostilePipelines, WriteNothingOutsideOfTheRunFolder) {
  int refused = 0, ended = 0, stopped = 0;
  for (int number = 0; number < 1000 && !HasFailure(); ++number) {
    const std::string text = any_pipeline();
    const fs::path run = any_run_folder(number);
    dsl::LoadResult parsed = dsl::parse_pipeline(text, "stranger.toml", folder_.path().string(), {});
    engine::CheckResult checked = has_errors(parsed.problems) ? engine::CheckResult() : engine::check(parsed.spec, registry_);
    if (!checked.plan) {
      ++refused;
    } else {
      try {
        engine::Run(*checked.plan, {.folder = run, .files = files_}).execute().error ? ++stopped : ++ended;
      } catch (const UserError&) {
        ++stopped;  // before anything was run
      }
    }
    expect_nothing_outside(run, text);
    fs::remove_all(run);
  }
  // The files are neither all refused by the checks nor all harmless.
  EXPECT_GT(refused, 200);
  EXPECT_GT(ended, 100);
  EXPECT_GT(stopped, 50);
}

TEST_F(HostilePipelines, TheCommandLineMayNameAnotherFolderForCheckpoints) {
  const std::string text =
      "[pipeline]\niterations = 1\n[budget]\ntokens_in_flight = 64\nmicro_batch_tokens = 8\n"
      "[nodes.lines]\ntype = \"lines\"\n[nodes.sink]\ntype = \"write_jsonl\"\ninputs = [\"lines\"]\nfields = [\"prompt\"]\n";
  const auto problems_with = [&](const std::string& written, const std::vector<std::string>& sets) {
    dsl::LoadResult parsed = dsl::parse_pipeline(text + written, "a.toml", folder_.path().string(), sets);
    return render(engine::check(parsed.spec, registry_).problems);
  };
  EXPECT_THAT(problems_with("[checkpoint]\nfolder = \"/scratch\"\n", {}),
              ::testing::HasSubstr("only the command line may say this"));
  EXPECT_EQ(problems_with("", {"checkpoint.folder=/scratch"}), "");
}

}  // namespace
}  // namespace sluice::nodes::hostile_pipeline_test
