#include "data/file_window.h"

#include <algorithm>
#include <span>

#include "base/error.h"

namespace sluice::data {
namespace {

constexpr uint64_t kReadAtOnce = uint64_t{1} << 20;

}  // namespace

std::string_view FileWindow::from(uint64_t begin, size_t least) {
  const uint64_t end = begin_ + bytes_.size();
  SLUICE_CHECK(begin_ <= begin && begin <= end, "a window that goes back or leaves something out");
  const uint64_t wanted = std::min<uint64_t>(begin + least, size());
  if (wanted > end) {
    bytes_.erase(0, static_cast<size_t>(begin - begin_));
    begin_ = begin;
    const size_t kept = bytes_.size();
    bytes_.resize(static_cast<size_t>(std::max(wanted, std::min(end + kReadAtOnce, size())) - begin));
    file_.read(end, std::span(bytes_).subspan(kept));
  }
  return std::string_view(bytes_).substr(static_cast<size_t>(begin - begin_));
}

}  // namespace sluice::data
