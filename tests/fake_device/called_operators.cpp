#include "tests/fake_device/called_operators.h"

#include <fstream>
#include <mutex>
#include <stdexcept>
#include <unordered_set>

namespace sluice::fake {
namespace {

struct Called {
  std::mutex mutex;
  std::ofstream file;
  std::unordered_set<c10::OperatorName> names;
};

Called& called() {
  static auto& all = *new Called;
  return all;
}

}  // namespace

void write_called_operators(const std::string& path) {
  called().file.open(path, std::ios::app);
  if (!called().file) throw std::runtime_error(path + " cannot be written");
}

void note_called(const c10::OperatorHandle& op) {
  if (!called().file.is_open()) return;
  const std::lock_guard lock(called().mutex);
  if (called().names.insert(op.operator_name()).second) called().file << c10::toString(op.operator_name()) + "\n" << std::flush;
}

}  // namespace sluice::fake
