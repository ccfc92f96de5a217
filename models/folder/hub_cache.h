#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::models {

/// A model of the Hugging Face Hub: `Qwen/Qwen2.5-0.5B-Instruct`, `gpt2`, or either with `@` and a branch, a tag or a commit.
struct HubModel {
  std::string id;
  std::string revision = "main";
};

/// Nothing where `text` cannot be the id of a model.
std::optional<HubModel> hub_model(std::string_view text);

/// Where huggingface_hub keeps what it loads: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub or
/// ~/.cache/huggingface/hub, the first of them that the environment has. Empty: HOME is not set either.
std::filesystem::path hub_cache();

/// The folder of a model in that cache, `models--ORG--NAME/snapshots/COMMIT`, whose files are links to `blobs/`. A commit may be
/// shortened to 7 digits. Nothing: the cache does not have it. What the cache says is taken for a name only, never for a path.
std::optional<std::filesystem::path> hub_snapshot(const HubModel& model, const std::filesystem::path& cache = hub_cache());

/// The folder that people mean by `text`: `path`, which is that text as a path, if something is there, else the model of the Hub
/// that is called so, out of the cache. Throws UserError with the command that loads the model where the cache does not have it;
/// a text that cannot be an id gives `path` back. Nothing is ever loaded over the network.
std::filesystem::path model_folder(const std::string& text, const std::filesystem::path& path);

/// The same of an argument of the command line, which may be a path with `~` and variables.
std::filesystem::path model_folder(const std::string& text);

}  // namespace sluice::models
