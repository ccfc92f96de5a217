#include "engine/contract/plugin/plugin.h"

#include <dlfcn.h>

#include <map>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "engine/contract/plugin/elf_file.h"
#include "engine/contract/plugin_code.h"

namespace sluice::engine {
namespace {

using AbiFunction = const char* (*)();
using RegisterFunction = void (*)(Registry&);

[[noreturn]] void refuse(const char* kind, std::string message, std::string help = {}) {
  throw UserError(
      Problem{.kind = kind, .where = {}, .message = std::move(message), .caret = {}, .notes = {}, .help = std::move(help)});
}

constexpr char kRebuild[] = "rebuild it against the installed headers of this program";

std::map<std::string, std::string> words_of(const std::string& abi) {
  std::map<std::string, std::string> words;
  for (const std::string& part : split(abi, ';')) {
    const size_t equals = part.rfind('=');
    if (equals != std::string::npos) words.emplace(part.substr(0, equals), part.substr(equals + 1));
  }
  return words;
}

// Code of the plugin, from the initialisers of its library on, whose exceptions become errors that name it.
template <class Call>
decltype(auto) guarded(const std::filesystem::path& path, const std::string& while_it, Call&& call) {
  const std::string what = "plugin " + path.string() + " failed while it " + while_it;
  try {
    return call_plugin(what, std::forward<Call>(call));
  } catch (const UserError& error) {
    Problems problems = error.problems();
    for (Problem& problem : problems) {
      if (problem.kind.empty()) problem.kind = "plugin-unusable";
    }
    throw UserError(std::move(problems));
  } catch (const InternalError& error) {  // what it describes cannot be: a parameter twice, a type without a name
    refuse("plugin-unusable", what + ": " + error.what());
  }
}

// The header says that dlopen() throws nothing, and a compiler that believes it has no way for what an initialiser throws.
void* open_through(const std::filesystem::path& path) {
  void* (*volatile open)(const char*, int) = dlopen;
  return open(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

void* open_library(const std::filesystem::path& path) {
  if (!is_there(path)) refuse("plugin-missing", "there is no plugin " + path.string());
  // A pipe would be waited for.
  if (!is_file(path)) refuse("plugin-unusable", path.string() + " is not a file, so it is no plugin");
  if (is_cut_off(path)) {
    refuse("plugin-unusable", "plugin " + path.string() + " cannot be loaded: the file is cut off",
           "build it again, or copy all of it");
  }
  // A name without a slash would be looked for in the folders of the system.
  void* library = guarded(path, "was loaded", [&] { return open_through(absolute_path(path)); });
  if (library != nullptr) return library;
  const std::string why = dlerror();
  const bool is_of_another_build =
      why.find("undefined symbol") != std::string::npos || why.find("version `") != std::string::npos;
  refuse("plugin-unusable", "plugin " + path.string() + " cannot be loaded: " + why,
         is_of_another_build ? kRebuild : "name the shared library that the plugin was compiled to");
}

template <class Function>
Function symbol(void* library, const char* name, const std::filesystem::path& path) {
  void* address = dlsym(library, name);
  if (address == nullptr) {
    refuse("plugin-unusable", path.string() + " is a shared library but not a plugin of sluice",
           "name its register function in SLUICE_PLUGIN(...)");
  }
  return reinterpret_cast<Function>(address);
}

std::string word_or_nothing(const std::map<std::string, std::string>& words, const std::string& word) {
  const auto found = words.find(word);
  return found == words.end() ? "nothing" : found->second;
}

void check_abi(const std::string& text, const std::filesystem::path& path) {
  const auto theirs = words_of(text), ours = words_of(abi_text());
  const std::string version = word_or_nothing(theirs, "sluice");
  if (version != kVersionText) {
    refuse("plugin-of-another-build",
           "plugin " + path.string() + " was built for sluice " + version + "; this is sluice " + kVersionText, kRebuild);
  }
  for (const auto& [word, mine] : ours) {
    const std::string other = word_or_nothing(theirs, word);
    if (other != mine) {
      refuse("plugin-of-another-build",
             "plugin " + path.string() + " was built with " + word + " " + other + "; this program has " + word + " " + mine,
             kRebuild);
    }
  }
}

/// Types added while it lives come from the plugin.
class OriginScope {
 public:
  OriginScope(Registry& registry, std::string origin) : registry_(registry) { registry_.set_origin(std::move(origin)); }
  ~OriginScope() { registry_.set_origin(kBuiltin); }
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  Registry& registry_;
};

}  // namespace

void load_plugin(const std::filesystem::path& path, Registry& registry) {
  void* library = open_library(path);
  const auto abi = symbol<AbiFunction>(library, "sluice_plugin_abi", path);
  const auto add_types = symbol<RegisterFunction>(library, "sluice_plugin_register", path);
  const char* const built_as = abi();
  check_abi(built_as == nullptr ? "" : built_as, path);
  const OriginScope origin(registry, path.filename().string());
  guarded(path, "registered its types", [&] { add_types(registry); });
}

}  // namespace sluice::engine
