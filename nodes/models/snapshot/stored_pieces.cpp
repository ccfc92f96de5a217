#include "nodes/models/snapshot/stored_pieces.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

struct Range {
  std::string tensor;
  int64_t first = 0;
  int64_t end = 0;
};

std::optional<int64_t> count_of(std::string_view text) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0) return std::nullopt;
  return count;
}

// Of "NAME[first:end]".
std::optional<Range> range_of(const std::string& stored) {
  const size_t open = stored.rfind('['), colon = stored.rfind(':');
  if (open == std::string::npos || colon == std::string::npos || colon < open || stored.back() != ']') return std::nullopt;
  const std::string_view text = stored;
  const auto first = count_of(text.substr(open + 1, colon - open - 1));
  const auto end = count_of(text.substr(colon + 1, text.size() - colon - 2));
  if (!first || !end || *first >= *end) return std::nullopt;
  return Range{stored.substr(0, open), *first, *end};
}

int64_t elements_of(at::IntArrayRef shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) elements *= size;
  return elements;
}

std::string elements_text(int64_t first, int64_t end) {
  return "elements " + std::to_string(first) + " to " + std::to_string(end - 1);
}

}  // namespace

std::string StoredPieces::name_of(const std::string& tensor, int64_t first, int64_t end) {
  return tensor + "[" + std::to_string(first) + ":" + std::to_string(end) + "]";
}

StoredPieces::StoredPieces(const std::vector<std::filesystem::path>& files) {
  files_.reserve(files.size());
  for (const auto& path : files) {
    const models::TensorFolder& file = files_.emplace_back(models::TensorFolder::of_file(path));
    for (const std::string& stored : file.names()) {
      const auto range = range_of(stored);
      const std::string tensor = range ? range->tensor : stored;
      auto& parts = parts_[tensor];
      if (parts.empty()) names_.push_back(tensor);
      parts.push_back({.file = &file, .stored = stored, .first = range ? range->first : 0, .end = range ? range->end : -1});
    }
  }
  for (auto& [tensor, parts] : parts_) std::ranges::stable_sort(parts, {}, &Part::first);
}

std::string StoredPieces::file_of(const std::string& tensor) const {
  const auto found = parts_.find(tensor);
  if (found == parts_.end()) return files_.front().file_of(tensor);
  return found->second.front().file->file_of(found->second.front().stored);
}

std::string StoredPieces::problem_with(const std::string& tensor, at::IntArrayRef shape) const {
  const auto found = parts_.find(tensor);
  if (found == parts_.end()) return file_of(tensor) + ": tensor " + sluice::quoted(tensor) + " is missing";
  int64_t next = 0;
  for (const Part& part : found->second) {
    const std::string where = part.file->file_of(part.stored) + ": tensor " + sluice::quoted(part.stored);
    if (part.first > next) return where + " comes behind " + elements_text(next, part.first) + ", which no file has";
    if (part.first < next) return where + " has elements that another one has too";
    if (auto problem = problem_with(part, where, shape); !problem.empty()) return problem;
    next = part.end < 0 ? elements_of(shape) : part.end;
  }
  if (next == elements_of(shape)) return {};
  return file_of(tensor) + ": tensor " + sluice::quoted(tensor) + " has " + std::to_string(next) + " elements; the model's has " +
         std::to_string(elements_of(shape));
}

std::string StoredPieces::problem_with(const Part& part, const std::string& where, at::IntArrayRef shape) const {
  const models::TensorEntry& entry = part.file->entry(part.stored);
  const std::vector<int64_t> wanted = part.end < 0 ? shape.vec() : std::vector{part.end - part.first};
  if (entry.shape != wanted)
    return where + " has shape " + models::shape_text(entry.shape) + "; the model's is " + models::shape_text(wanted);
  if (entry.dtype != "F32") return where + " has dtype " + entry.dtype + "; expected F32";
  return part.file->damage_of(part.stored);
}

void StoredPieces::read_into(const models::TensorPiece& piece) const {
  const at::NoGradGuard no_gradient;
  const int64_t wanted_end = piece.first + piece.values.numel();
  for (const Part& part : parts_.at(piece.name)) {
    if (part.first >= wanted_end || (part.end >= 0 && part.end <= piece.first)) continue;
    int64_t at = part.first;
    part.file->for_each_rows(part.stored, [&](const at::Tensor& rows, int64_t) {
      const int64_t begin = std::max(at, piece.first), end = std::min(at + rows.numel(), wanted_end);
      if (begin < end)
        piece.values.narrow(0, begin - piece.first, end - begin).copy_(rows.reshape({-1}).narrow(0, begin - at, end - begin));
      at += rows.numel();
    });
  }
}

}  // namespace sluice::nodes
