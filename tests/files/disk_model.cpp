#include "tests/files/disk_model.h"

#include <fcntl.h>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace sluice {
namespace fs = std::filesystem;
using Kind = FolderContent::Kind;
using Operation = FileOperation::Kind;

bool DiskModel::NameChange::touches(Node folder) const {
  return std::ranges::any_of(entries, [&](const Entry& entry) { return entry.folder == folder; });
}

DiskModel::DiskModel(const FolderContent& before) {
  add(Kind::kFolder, {});
  for (const auto& [path, entry] : before.entries) {
    const auto [folder, name] = place_of(path);
    live_[folder][name] = add(entry.kind, entry.bytes);
  }
  on_disk_ = live_;
}

DiskModel::Node DiskModel::add(Kind kind, std::string bytes) {
  if (kind == Kind::kFolder) live_[nodes_.size()], on_disk_[nodes_.size()];  // without names yet
  nodes_.push_back({.kind = kind, .durable = bytes, .bytes = bytes, .unsynced = {}, .possible = {}});
  return nodes_.size() - 1;
}

DiskModel::Node DiskModel::node_at(const fs::path& path) const {
  Node node = kRoot;
  for (const fs::path& part : path) {
    if (part == ".") continue;
    const auto folder = live_.find(node);
    if (folder == live_.end()) return kNothing;
    const auto entry = folder->second.find(part.string());
    if (entry == folder->second.end()) return kNothing;
    node = entry->second;
  }
  return node;
}

DiskModel::Place DiskModel::place_of(const fs::path& path) const {
  const Node folder = node_at(path.parent_path());
  if (folder == kNothing) throw std::logic_error("the recording knows no folder of " + path.string());
  return {folder, path.filename().string()};
}

void DiskModel::set_names(std::vector<NameChange::Entry> entries) {
  for (const auto& [folder, name, node] : entries) {
    if (node == kNothing) {
      live_[folder].erase(name);
    } else {
      live_[folder][name] = node;
    }
  }
  unsynced_.push_back({std::move(entries)});
}

void DiskModel::change(std::string& bytes, const DataChange& change) {
  if (!change.is_write) return bytes.resize(change.offset);
  if (bytes.size() < change.offset + change.bytes.size()) bytes.resize(change.offset + change.bytes.size());
  bytes.replace(change.offset, change.bytes.size(), change.bytes);
}

void DiskModel::set_data(Node node, DataChange to) {
  Item& item = nodes_[node];
  change(item.bytes, to);
  item.unsynced.push_back(std::move(to));
  item.possible.clear();
}

void DiskModel::open(const FileOperation& operation) {
  Node node = node_at(operation.path);
  if (node == kNothing) {
    if ((operation.flags & O_CREAT) == 0) throw std::logic_error("the recording knows no " + operation.path.string());
    const auto [folder, name] = place_of(operation.path);
    node = add(Kind::kFile, {});
    set_names({{folder, name, node}});
  } else if ((operation.flags & O_TRUNC) != 0 && !nodes_[node].bytes.empty()) {
    set_data(node, {});
  }
  handles_[operation.handle] = {node, 0, (operation.flags & O_APPEND) != 0};
}

void DiskModel::apply(const FileOperation& operation) {
  switch (operation.kind) {
    case Operation::kOpen:
      return open(operation);
    case Operation::kWrite: {
      Handle& handle = handles_.at(operation.handle);
      const size_t offset = handle.appends ? nodes_[handle.node].bytes.size() : handle.position;
      set_data(handle.node, {.is_write = true, .offset = offset, .bytes = operation.bytes});
      handle.position = offset + operation.bytes.size();
      return;
    }
    case Operation::kTruncate: {
      const Node node = handles_.at(operation.handle).node;
      if (nodes_[node].bytes.size() == static_cast<size_t>(operation.size)) return;
      return set_data(node, {.is_write = false, .offset = static_cast<size_t>(operation.size), .bytes = {}});
    }
    case Operation::kSync:
      return sync(handles_.at(operation.handle).node);
    case Operation::kClose:
      handles_.erase(operation.handle);
      return;
    case Operation::kRename:
    case Operation::kExchange: {
      const auto [from, name] = place_of(operation.path);
      const auto [to, new_name] = place_of(operation.other);
      const Node stays = operation.kind == Operation::kExchange ? node_at(operation.other) : kNothing;
      return set_names({{from, name, stays}, {to, new_name, node_at(operation.path)}});
    }
    case Operation::kMakeFolder:
    case Operation::kMakeLink: {
      const auto [folder, name] = place_of(operation.path);
      const Kind kind = operation.kind == Operation::kMakeFolder ? Kind::kFolder : Kind::kLink;
      return set_names({{folder, name, add(kind, operation.bytes)}});
    }
    case Operation::kRemoveFile:
    case Operation::kRemoveFolder: {
      const auto [folder, name] = place_of(operation.path);
      return set_names({{folder, name, kNothing}});
    }
  }
}

void DiskModel::sync(Node node) {
  if (nodes_[node].kind == Kind::kFolder) return sync_folder(node);
  Item& item = nodes_[node];
  item.durable = item.bytes;
  item.unsynced.clear();
  item.possible.clear();
}

void DiskModel::sync_folder(Node folder) {
  std::set<Node> waited_for = {folder};
  std::vector<bool> synced(unsynced_.size());
  for (size_t i = unsynced_.size(); i-- > 0;) {
    const auto& entries = unsynced_[i].entries;
    synced[i] = std::ranges::any_of(entries, [&](const auto& entry) { return waited_for.contains(entry.folder); });
    if (!synced[i]) continue;
    for (const auto& entry : entries) waited_for.insert(entry.folder);
  }
  std::vector<NameChange> rest;
  for (size_t i = 0; i < unsynced_.size(); ++i) {
    if (!synced[i]) {
      rest.push_back(std::move(unsynced_[i]));
      continue;
    }
    for (const auto& [in, name, node] : unsynced_[i].entries) {
      if (node == kNothing) {
        on_disk_[in].erase(name);
      } else {
        on_disk_[in][name] = node;
      }
    }
  }
  unsynced_ = std::move(rest);
}

const std::vector<DiskModel::Bytes>& DiskModel::possible_bytes(Node node) const {
  const Item& item = nodes_[node];
  if (!item.possible.empty()) return item.possible;
  std::vector<std::string> all = item.unsynced.empty() ? std::vector{item.bytes} : variants(item);
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_last = i + 1 == all.size();
    if (!is_last && all[i] == item.bytes) continue;
    if (std::ranges::any_of(item.possible, [&](const Bytes& known) { return *known == all[i]; })) continue;
    item.possible.push_back(std::make_shared<const std::string>(std::move(all[i])));
  }
  return item.possible;
}

std::vector<std::string> DiskModel::variants(const Item& item) const {
  std::vector<std::string> variants = {item.durable};
  const size_t count = item.unsynced.size();
  std::string bytes = item.durable;
  size_t begin = std::string::npos, end = 0;  // of what was written
  for (size_t i = 0; i < count; ++i) {
    const DataChange& next = item.unsynced[i];
    if (next.is_write) begin = std::min(begin, next.offset), end = std::max(end, next.offset + next.bytes.size());
    if (i + 1 == count && next.is_write && next.bytes.size() > 1) {  // half of the last write
      std::string torn = bytes;
      change(torn, {.is_write = true, .offset = next.offset, .bytes = next.bytes.substr(0, next.bytes.size() / 2)});
      variants.push_back(std::move(torn));
    }
    change(bytes, next);
    const bool tells = count <= 4 || i == 0 || i + 1 == count / 2 || i + 2 == count;  // of many, these
    if (tells && i + 1 < count) variants.push_back(bytes);
  }
  end = std::min(end, bytes.size());
  if (begin < end) {  // its length is there before its bytes are; and some bytes before others
    std::string zeros = bytes, half = bytes;
    std::fill(zeros.begin() + static_cast<ptrdiff_t>(begin), zeros.begin() + static_cast<ptrdiff_t>(end), '\0');
    std::fill(half.begin() + static_cast<ptrdiff_t>(begin), half.begin() + static_cast<ptrdiff_t>(begin + (end - begin) / 2),
              '\0');
    variants.push_back(std::move(zeros));
    variants.push_back(std::move(half));
  }
  variants.push_back(bytes);
  return variants;
}

}  // namespace sluice
