#include "models/sample/route_blocks.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::models {

RouteBlocks::RouteBlocks(const RouteForm& form, int64_t block_size, int64_t blocks) : form_(form), block_size_(block_size) {
  SLUICE_CHECK(form.layers > 0, "a model without experts has no routes");
  bytes_ = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(blocks * block_size * form.token_bytes()));
}

void RouteBlocks::copy_block(int32_t from, int32_t to) { std::copy_n(at(from, 0), block_size_ * form_.token_bytes(), at(to, 0)); }

void RouteBlocks::append(std::span<const int32_t> blocks, int64_t begin, int64_t end, std::string& to) const {
  const int64_t bytes = form_.token_bytes();
  for (int64_t next; begin < end; begin = next) {
    next = std::min(end, (begin / block_size_ + 1) * block_size_);
    const int64_t place = blocks[static_cast<size_t>(begin / block_size_)] * block_size_ + begin % block_size_;
    to.append(reinterpret_cast<const char*>(bytes_.get()) + place * bytes, static_cast<size_t>((next - begin) * bytes));
  }
}

}  // namespace sluice::models
