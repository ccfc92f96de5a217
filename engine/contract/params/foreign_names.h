#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {

// Names that people bring from TRL, verl, OpenRLHF, NeMo-RL and Axolotl, and what does the same here. Data: the engine depends on
// none of the types that it names. A test holds every target against the contracts of the builtin types.

/// A key of another system. Several rows of one name: it means several things there.
struct ForeignKey {
  std::string_view
      name;  // as others write it, in lower case, with underscores; or a name of ours that is often written elsewhere
  std::string_view
      of;  // where ours stands: "[budget]", "models", "models.optimizer", a node type, "objective:ppo_clip"; empty: nowhere
  std::string_view key;   // ours
  std::string_view says;  // in what ours differs; without `of`, what does the job
};

/// A type of another system, or an algorithm that is not one type here.
struct ForeignType {
  std::string_view name;  // likewise
  std::string_view as;    // what it was written as: "node", "objective", "preference_objective", "value_objective"
  std::string_view says;  // one sentence
  std::string_view
      names;  // the types and pipelines that the sentence names, a blank between two: "grpo objective:ppo_clip grpo.toml"
};

std::span<const ForeignKey> foreign_keys();
std::span<const ForeignType> foreign_types();

/// Rows for `name`, in which dashes, capitals and leading dashes do not matter.
std::vector<ForeignKey> foreign_keys(std::string_view name);

/// "here num_generations is samples_per_prompt in a node of type \"generate\"". Empty without rows.
std::string foreign_key_text(std::string_view name, std::span<const ForeignKey> rows);

/// The sentence about `name`, written as a node type or as a component of kind `as`. Empty when there is none.
std::string foreign_type_text(std::string_view name, std::string_view as);

/// "in [budget]", "in [models.NAME.optimizer]", "in a node of type \"generate\"", "in objective \"ppo_clip\"": see
/// ForeignKey::of.
std::string place_text(std::string_view of);

}  // namespace sluice::engine
