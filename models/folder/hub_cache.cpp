#include "models/folder/hub_cache.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/files/user_path.h"
#include "base/text/strings.h"

namespace sluice::models {
namespace {

namespace fs = std::filesystem;

// What huggingface_hub allows in a part of an id; so no part can lead out of the cache.
bool is_id_part(std::string_view part) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
  return !part.empty() && part.size() <= 96 && std::ranges::all_of(part, allowed) && !part.starts_with('.') &&
         !part.starts_with('-') && !part.ends_with('.') && !part.ends_with('-') && part.find("..") == std::string_view::npos &&
         part.find("--") == std::string_view::npos;
}

bool is_commit(std::string_view text) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0 || (c >= 'a' && c <= 'f'); };
  return text.size() >= 7 && text.size() <= 64 && std::ranges::all_of(text, is_digit);
}

// Branches and tags; a pull request is refs/pr/1.
bool is_revision(std::string_view text) {
  if (text.empty() || text.size() > 200) return false;
  const std::vector<std::string> parts = split(text, '/');
  return std::ranges::all_of(parts, [](const std::string& part) {
    const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '+'; };
    return !part.empty() && !part.starts_with('.') && std::ranges::all_of(part, allowed);
  });
}

// The commit that a branch or a tag was when it was loaded last.
std::optional<std::string> commit_of(const fs::path& folder, const std::string& revision) {
  constexpr int64_t kMost = 256;  // bytes; a commit has 40
  const fs::path ref = folder / "refs" / revision;
  if (!is_file(ref)) return std::nullopt;
  const std::string commit(trim(read_file(ref, kMost)));
  return is_commit(commit) ? std::optional(commit) : std::nullopt;
}

// The one snapshot whose name begins so.
std::optional<fs::path> snapshot_of(const fs::path& folder, const std::string& commit) {
  std::optional<fs::path> found;
  if (!is_folder(folder / "snapshots")) return found;
  for (const fs::path& entry : entries_of(folder / "snapshots")) {
    if (!entry.filename().string().starts_with(commit)) continue;
    if (found) return std::nullopt;
    found = entry;
  }
  return found;
}

std::string load_command(const HubModel& model) {
  return "hf download " + model.id + (model.revision == "main" ? "" : " --revision " + model.revision);
}

}  // namespace

std::optional<HubModel> hub_model(std::string_view text) {
  HubModel model;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    model.revision = text.substr(at + 1);
    text = text.substr(0, at);
    if (!is_revision(model.revision)) return std::nullopt;
  }
  model.id = text;
  const std::vector<std::string> parts = split(text, '/');
  return parts.size() <= 2 && std::ranges::all_of(parts, is_id_part) ? std::optional(model) : std::nullopt;
}

fs::path hub_cache() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string cache = environment_value(name); !cache.empty()) return expanded_path(cache);
  }
  if (const std::string home = environment_value("HF_HOME"); !home.empty()) return fs::path(expanded_path(home)) / "hub";
  if (const std::string caches = environment_value("XDG_CACHE_HOME"); !caches.empty())
    return fs::path(expanded_path(caches)) / "huggingface/hub";
  const std::string home = environment_value("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".cache/huggingface/hub";
}

std::optional<fs::path> hub_snapshot(const HubModel& model, const fs::path& cache) {
  if (cache.empty()) return std::nullopt;
  const std::vector<std::string> parts = split(model.id, '/');
  const fs::path folder = cache / ("models--" + join(parts, "--"));
  std::optional<std::string> commit = commit_of(folder, model.revision);
  if (!commit && is_commit(model.revision)) commit = model.revision;
  return commit ? snapshot_of(folder, *commit) : std::nullopt;
}

fs::path model_folder(const std::string& text, const fs::path& path) {
  if (is_file(path)) throw UserError(path.string() + " is a file, not the folder of a model", "name the folder that it is in");
  if (name_kind(path) != PathKind::kNothing) return path;
  const std::optional<HubModel> model = hub_model(text);
  if (!model) return path;
  const fs::path cache = hub_cache();
  if (const auto snapshot = hub_snapshot(*model, cache)) return absolute_path(*snapshot).lexically_normal();
  Problem problem;
  problem.message = "there is no folder " + path.string() + ", and no such model in Hugging Face's cache";
  if (is_folder(cache)) problem.notes.push_back("the cache is " + cache.string());
  problem.help = "for a model of the Hub: " + load_command(*model) + " (of huggingface_hub, from pip)";
  throw UserError(std::move(problem));
}

fs::path model_folder(const std::string& text) { return model_folder(text, expanded_path(text)); }

}  // namespace sluice::models
