#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/file.h"

namespace sluice::engine {

/// A file of the run folder that a node appends to. On several ranks each has lines of its own, and rank 0 has the file: there it
/// gets those of the others at the end of an iteration, before the node's state is saved, in the order of the ranks.
///
/// A handle; copies are the same file. Used by the node's executor only. Throws UserError where the disk is full.
class GatheredFile {
 public:
  struct Content {
    std::optional<OutputFile> file;  // of rank 0
    std::string waiting;             // for it, of any other rank
  };

  explicit GatheredFile(std::shared_ptr<Content> content) : content_(std::move(content)) {}

  void write(std::string_view text);

  /// Bytes of the file; 0 where another rank has it.
  int64_t size() const { return content_->file ? content_->file->size() : 0; }

 private:
  std::shared_ptr<Content> content_;
};

/// The files of one node on one rank, as the engine gathers them. Used by the node's executor only.
class GatheredFiles {
 public:
  /// A file of that name, open where this is rank 0.
  GatheredFile add(const std::string& name, const std::shared_ptr<GatheredFile::Content>& content);

  bool empty() const { return contents_.empty(); }

  /// What was appended since the last call, for rank 0.
  std::string take();

  /// On rank 0: appends what another rank has taken. Throws InternalError for a file that this node has not.
  void append(std::string_view taken);

 private:
  std::map<std::string, std::shared_ptr<GatheredFile::Content>> contents_;
};

}  // namespace sluice::engine
