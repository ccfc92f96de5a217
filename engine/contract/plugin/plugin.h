#pragma once

#include <filesystem>
#include <string>

#include "engine/contract/registry.h"
#include "engine/contract/version.h"

namespace sluice::engine {

/// What a plugin and the program that loads it must have in common, as `word=value;word=value`: compiled into both. Hidden, or a
/// plugin would call the program's.
__attribute__((visibility("hidden"))) inline std::string abi_text() {
  std::string text = std::string("sluice=") + kVersionText;
  text += ";c++=" + std::to_string(__cplusplus / 100);
#ifdef _GLIBCXX_USE_CXX11_ABI
  text += ";libstdc++ string=" + std::to_string(_GLIBCXX_USE_CXX11_ABI);
#endif
#ifdef _GLIBCXX_DEBUG
  text += ";debug containers=1";
#else
  text += ";debug containers=0";
#endif
#if defined(__SANITIZE_ADDRESS__)
  text += ";sanitizer=address";
#elif defined(__SANITIZE_THREAD__)
  text += ";sanitizer=thread";
#else
  text += ";sanitizer=none";
#endif
  return text;
}

/// Loads a shared library that was made with SLUICE_PLUGIN and lets it add its types to the registry. The library stays loaded
/// until the program ends, because its types live in the registry. Call it before pipelines are checked, from one thread.
///
/// Throws UserError: no such file, no shared library or half of one, no plugin, built for another version or in another way, a
/// name that is taken already, or an exception while it is loaded or registers. After an error the registry may hold some of its
/// types; do not use it further.
void load_plugin(const std::filesystem::path& path, Registry& registry);

}  // namespace sluice::engine

/// Makes a shared library a plugin; once a library, outside of any namespace:
///
///   void add_my_nodes(sluice::engine::Registry& registry) { registry.add<MyNode>(); }
///   SLUICE_PLUGIN(add_my_nodes)
#define SLUICE_PLUGIN(function)                                                                                         \
  extern "C" __attribute__((visibility("default"))) const char* sluice_plugin_abi() {                                   \
    static const std::string text = ::sluice::engine::abi_text();                                                       \
    return text.c_str();                                                                                                \
  }                                                                                                                     \
  extern "C" __attribute__((visibility("default"))) void sluice_plugin_register(::sluice::engine::Registry& registry) { \
    function(registry);                                                                                                 \
  }
