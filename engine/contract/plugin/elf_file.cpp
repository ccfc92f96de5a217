#include "engine/contract/plugin/elf_file.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/files/open_file.h"

namespace sluice::engine {
namespace {

using ElfHeader = ElfW(Ehdr);
using ElfSegment = ElfW(Phdr);

// Where it begins and how long it is, as a header says that may be anybody's.
struct FilePart {
  uint64_t begin = 0;
  uint64_t bytes = 0;

  bool is_within(uint64_t size) const { return begin <= size && bytes <= size - begin; }
};

// Which the file has, by its size.
template <class T>
T read_at(const OpenFile& file, uint64_t place) {
  T value{};
  file.read(place, {reinterpret_cast<char*>(&value), sizeof value});
  return value;
}

bool is_of_this_machine(const ElfHeader& header) {
  const unsigned char ours = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ours;
}

// Those that are mapped.
std::vector<FilePart> segments_of(const OpenFile& file, const ElfHeader& header) {
  std::vector<FilePart> parts;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read_at<ElfSegment>(file, header.e_phoff + i * sizeof(ElfSegment));
    if (segment.p_type == PT_LOAD) parts.push_back({segment.p_offset, segment.p_filesz});
  }
  return parts;
}

}  // namespace

bool is_cut_off(const std::filesystem::path& path) {
  const OpenFile file(path);
  if (file.size() < sizeof(ElfHeader)) return false;
  const auto header = read_at<ElfHeader>(file, 0);
  if (!is_of_this_machine(header)) return false;
  const FilePart sections{header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize};
  const FilePart segments{header.e_phoff, uint64_t{header.e_phnum} * sizeof(ElfSegment)};
  if (!sections.is_within(file.size()) || !segments.is_within(file.size())) return true;
  return std::ranges::any_of(segments_of(file, header), [&](const FilePart& part) { return !part.is_within(file.size()); });
}

}  // namespace sluice::engine
