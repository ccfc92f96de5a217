#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// A path as people write it, with what stands for something else replaced: `~` or `~/` at the beginning by HOME, `$NAME` and
/// `${NAME}` by the environment variable, `$$` by a dollar sign. What was put in is not looked through again.
/// Throws UserError naming the variable when it is not set. `~name` stays as it is. Thread-safe while nobody changes the
/// environment.
std::string expanded_path(std::string_view text);

/// Only `~` or `~/` at the beginning is replaced: a path of the command line, whose variables the shell has replaced already,
/// and its `~` not everywhere (`--option=~/runs`). Throws UserError where HOME is not set.
std::string with_home(std::string_view text);

/// The text from which expanded_path() makes this absolute path: each dollar sign twice.
std::string unexpanded_path(std::string_view path);

/// The value of an environment variable; empty also where it is not set.
std::string environment_value(const std::string& name);

}  // namespace sluice
