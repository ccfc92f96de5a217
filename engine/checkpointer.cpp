#include "engine/checkpointer.h"

#include "base/error.h"
#include "base/file.h"

namespace sluice::engine {
namespace fs = std::filesystem;

void Checkpointer::model_updated(const std::string& model, int64_t iteration) {
  if (run_folder_.empty() || every_iterations_ == 0 || (iteration + 1) % every_iterations_ != 0) return;
  const std::lock_guard lock(mutex_);
  write(model);
  std::set<std::string>& written = written_[iteration];
  written.insert(model);
  if (written.size() < models_.size()) return;
  commit();
  written_.erase(iteration);
}

void Checkpointer::save_all() {
  if (run_folder_.empty() || models_.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, model] : models_) write(name);
  commit();
}

fs::path Checkpointer::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void Checkpointer::write(const std::string& model) {
  std::error_code error;
  fs::create_directories(pending_folder(), error);
  if (error) throw UserError("cannot create " + pending_folder().string() + ": " + error.message());
  models_.at(model)->save(pending_folder() / model);
}

void Checkpointer::commit() {
  replace_path(pending_folder(), run_folder_ / "checkpoint");
  last_ = run_folder_ / "checkpoint";
}

}  // namespace sluice::engine
