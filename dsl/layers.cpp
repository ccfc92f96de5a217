#include "dsl/layers.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "dsl/builtin.h"
#include "dsl/toml_source.h"
#include "engine/contract/params/foreign_names.h"

namespace sluice::dsl {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostBytes = 1 << 20;

Problem plain_problem(const char* kind, SourceSpan where, std::string message, std::string help = {}) {
  return {
      .kind = kind, .where = std::move(where), .message = std::move(message), .caret = {}, .notes = {}, .help = std::move(help)};
}

// What was meant, where nothing has that name; empty: nothing alike, or it is there.
std::string similar_file(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::vector<std::string> names;
  try {
    if (is_there(file)) return {};
    for (const fs::path& entry : is_folder(folder) ? entries_of(folder) : std::vector<fs::path>{}) {
      if (entry.extension() == ".toml") names.push_back(entry.filename().string());
    }
  } catch (const UserError&) {
    return {};  // a folder that may not be read
  }
  std::string name = file.filename().string();
  if (std::find(names.begin(), names.end(), name + ".toml") != names.end())
    return (file.parent_path() / (name + ".toml")).string();
  name = did_you_mean(name, names);
  return name.empty() ? builtin_called(file) : (file.parent_path() / name).string();
}

// `where` is the extends that names the file.
std::optional<std::string> read_text(const fs::path& file, const SourceSpan& where, Problems& problems) {
  try {
    return read_file(file, kMostBytes);
  } catch (const UserError& error) {
    Problem problem = error.problems().front();
    problem.kind = "file-unreadable";
    problem.where = where;
    const std::string near = similar_file(file);
    if (!near.empty()) problem.help = "did you mean " + near + "?";
    problems.push_back(std::move(problem));
    return std::nullopt;
  }
}

std::optional<engine::Table> parse_file(std::string text, std::string name, const std::string& base, Problems& problems) {
  const auto source = std::make_shared<SourceText>(SourceText{std::move(name), without_byte_order_mark(std::move(text))});
  auto root = parse_toml(source->text, source, base, problems);
  if (root) check_top_level(*root, problems);
  return root;
}

/// One step of the chain: who extends whom, and where that is written.
struct Extends {
  fs::path file;  // as the user would type it
  SourceSpan where;
};

std::optional<Extends> extends_of(const engine::Table& root, Problems& problems) {
  const engine::Entry* entry = root.find(extends_key().name);
  if (entry == nullptr) return std::nullopt;
  const auto* name = std::get_if<std::string>(&entry->value.data);
  if (name == nullptr || name->empty()) {
    problems.push_back(
        {.kind = "extends-unusable",
         .where = entry->value.where,
         .message = "extends must name a file, not " + (name != nullptr ? "nothing" : engine::kind_name(entry->value)),
         .caret = "write it like \"ppo.toml\"",
         .notes = {},
         .help = {}});
    return std::nullopt;
  }
  if (const auto builtin = builtin_name(*name)) {
    auto file = builtin_file(*builtin, entry->value.where, problems);
    if (!file) return std::nullopt;
    return Extends{std::move(*file), entry->value.where};
  }
  return Extends{(fs::path(entry->value.base) / *name).lexically_normal(), entry->value.where};
}

fs::path identity(const fs::path& file) {
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(file, error);
  return error ? file : canonical;
}

/// Follows `extends` from file to file.
class Chain {
 public:
  explicit Chain(Problems& problems) : problems_(problems) {}

  void add_file(const Extends& step) {
    if (is_cycle(step)) return;
    visited_.push_back(step.file);
    auto text = read_text(step.file, step.where, problems_);
    if (!text) {
      files_.complete = false;
      return;
    }
    add_text(std::move(*text), step.file.string(), step.file.parent_path().string());
  }

  void add_text(std::string text, std::string name, const std::string& base) {
    auto root = parse_file(std::move(text), std::move(name), base, problems_);
    if (!root) {
      files_.complete = false;
      return;
    }
    const size_t before = problems_.size();
    const auto next = extends_of(*root, problems_);
    if (problems_.size() > before) files_.complete = false;
    std::erase_if(root->entries, [](const engine::Entry& entry) { return entry.key == extends_key().name; });
    files_.layers.push_back({std::move(*root), false});
    if (next) add_file(*next);
  }

  Files finish() && {
    std::reverse(files_.layers.begin(), files_.layers.end());
    return std::move(files_);
  }

 private:
  bool is_cycle(const Extends& step) {
    const auto first = std::find_if(visited_.begin(), visited_.end(),
                                    [&](const fs::path& file) { return identity(file) == identity(step.file); });
    if (first == visited_.end()) return false;
    Problem problem = plain_problem("extends-circle", step.where, "a file extends itself", "remove one extends of the circle");
    for (auto it = first; it != visited_.end(); ++it) {
      const fs::path& next = it + 1 == visited_.end() ? *first : *(it + 1);
      problem.notes.push_back(it->string() + " extends " + next.string());
    }
    problems_.push_back(std::move(problem));
    files_.complete = false;
    return true;
  }

  Problems& problems_;
  Files files_;
  std::vector<fs::path> visited_;
};

}  // namespace

const std::vector<std::string>& table_names() {
  static const std::vector<std::string> names = {"pipeline", "budget",  "schedule", "runtime", "checkpoint",
                                                 "log",      "cluster", "devices",  "models",  "nodes"};
  return names;
}

const PlainKey& plugins_key() {
  static const PlainKey key{"plugins",
                            "shared libraries with node types and objectives, in the folder of the pipeline file or below"};
  return key;
}

const PlainKey& extends_key() {
  static const PlainKey key{
      "extends",
      "the file that this one is a layer over, or \"builtin:NAME\", a pipeline that comes with the program: what is "
      "written here goes before what it has"};
  return key;
}

void check_top_level(const engine::Table& root, Problems& problems) {
  std::vector<std::string> known = table_names();
  known.insert(known.end(), {plugins_key().name, extends_key().name});
  for (const engine::Entry& entry : root.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    const bool is_table = std::holds_alternative<engine::Table>(entry.value.data);
    std::string help = engine::foreign_key_text(entry.key, engine::foreign_keys(entry.key));
    const std::string near = help.empty() ? did_you_mean(entry.key, known) : std::string();
    const bool near_table = near != plugins_key().name && near != extends_key().name;
    if (near.empty() && help.empty())
      help = "a pipeline has the tables " + join(table_names(), ", ") + " and the keys " + plugins_key().name + " and " +
             extends_key().name;
    Problem problem{
        .kind = is_table ? "unknown-table" : "key-outside-table",
        .where = entry.key_where,
        .message = is_table ? "unknown table [" + entry.key + "]" : "key " + entry.key + " stands outside of any table",
        .caret = near.empty() ? "" : "did you mean " + (near_table ? "[" + near + "]" : near) + "?",
        .notes = {},
        .help = std::move(help)};
    problems.push_back(std::move(problem));
  }
}

Files read_layers(const fs::path& file, Problems& problems) {
  fs::path first = file;
  if (const auto name = builtin_name(file.string())) {
    auto builtin = builtin_file(*name, {}, problems);
    if (!builtin) return {.layers = {}, .complete = false};
    first = std::move(*builtin);
  }
  Chain chain(problems);
  chain.add_file({first, {}});
  return std::move(chain).finish();
}

Files parse_layers(std::string text, std::string name, const std::string& base_folder, Problems& problems) {
  Chain chain(problems);
  chain.add_text(std::move(text), std::move(name), base_folder);
  return std::move(chain).finish();
}

}  // namespace sluice::dsl
