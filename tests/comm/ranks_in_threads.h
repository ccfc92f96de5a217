#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace sluice::comm::testing {

/// Calls `work` for each rank, each in a thread of its own, and returns what each said when it failed: by rank, empty where it
/// did not.
inline std::vector<std::string> in_threads(int ranks, const std::function<void(int rank)>& work) {
  std::vector<std::string> said(static_cast<size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(rank);
      } catch (const UserError& error) {
        said[static_cast<size_t>(rank)] = error.message();
      } catch (const std::exception& error) {
        said[static_cast<size_t>(rank)] = std::string("not the user's: ") + error.what();
      }
    });
  }
  threads.clear();
  return said;
}

}  // namespace sluice::comm::testing
