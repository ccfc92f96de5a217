#include "engine/contract/gathered_files.h"

#include <utility>

#include "base/error.h"
#include "base/numbers/bytes.h"

namespace sluice::engine {

void GatheredFile::write(std::string_view text) {
  if (content_->file)
    content_->file->write(text);
  else
    content_->waiting += text;
}

GatheredFile GatheredFiles::add(const std::string& name, const std::shared_ptr<GatheredFile::Content>& content) {
  contents_[name] = content;
  return GatheredFile(content);
}

std::string GatheredFiles::take() {
  ByteWriter bytes;
  bytes.number(uint64_t{contents_.size()});
  for (auto& [name, content] : contents_) {
    bytes.text(name);
    bytes.text(std::exchange(content->waiting, {}));
  }
  return bytes.take();
}

void GatheredFiles::append(std::string_view taken) {
  ByteReader bytes(taken);
  for (uint64_t left = bytes.number<uint64_t>(); left > 0; --left) {
    const std::string name(bytes.text());
    const auto content = contents_.find(name);
    SLUICE_CHECK(content != contents_.end(), "another rank has lines for " + name + ", which this one does not write");
    GatheredFile(content->second).write(bytes.text());
  }
  bytes.expect_end();
}

}  // namespace sluice::engine
