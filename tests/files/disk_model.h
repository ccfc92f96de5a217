#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/files/recording_file_system.h"

namespace sluice {

/// Plays recorded operations and knows what of them must be on the disk. What a power cut may leave of the rest:
///
/// - Names (create, rename, exchange, link, remove) of one folder reach the disk in the order of the operations: some first part
/// of
///   them is there. Folders do not wait for each other; an operation on two folders is there in both or in neither.
/// - fsync of a folder puts on the disk the names that were changed in it before, and what these had to wait for. Not its own
///   name, and not the bytes of its files.
/// - fsync of a file puts its bytes on the disk, not its name. Bytes without fsync are there, or not, or in part, or zeros stand
/// for
///   them, whether the name is there or not: a rename waits for no bytes.
/// - A symbolic link has its target as soon as it has its name.
///
/// That is less than ext4, XFS or btrfs promise in their usual settings, and what POSIX programs may rely on.
class DiskModel {
 public:
  using Node = size_t;  // a file, folder or link, whatever its names are; kRoot is the recorded folder
  static constexpr Node kRoot = 0;
  static constexpr Node kNothing = static_cast<Node>(-1);

  struct NameChange {
    struct Entry {
      Node folder;
      std::string name;
      Node node;  // kNothing: the name goes
    };
    std::vector<Entry> entries;
    bool touches(Node folder) const;
  };

  using Names = std::map<Node, std::map<std::string, Node>>;  // of each folder
  using Bytes = std::shared_ptr<const std::string>;           // also a link's target

  explicit DiskModel(const FolderContent& before);

  void apply(const FileOperation& operation);

  const Names& names_on_disk() const { return on_disk_; }

  /// What may or may not be there, in order.
  const std::vector<NameChange>& unsynced_names() const { return unsynced_; }

  FolderContent::Kind kind(Node node) const { return nodes_[node].kind; }

  /// What may be in a file: first what must be there at least, last all that was written. One, when it was synced.
  const std::vector<Bytes>& possible_bytes(Node node) const;

 private:
  struct DataChange {
    bool is_write = false;  // else the file is cut to `offset`
    size_t offset = 0;
    std::string bytes;
  };

  struct Item {
    FolderContent::Kind kind = FolderContent::Kind::kFile;
    std::string durable;                  // bytes that are on the disk for sure
    std::string bytes;                    // as a reader sees them
    std::vector<DataChange> unsynced;     // lead from `durable` to `bytes`
    mutable std::vector<Bytes> possible;  // empty: not known yet
  };

  struct Handle {
    Node node;
    size_t position;
    bool appends;
  };

  struct Place {
    Node folder;
    std::string name;
  };

  static void change(std::string& bytes, const DataChange& change);

  Node add(FolderContent::Kind kind, std::string bytes);
  Place place_of(const std::filesystem::path& path) const;
  Node node_at(const std::filesystem::path& path) const;
  void set_names(std::vector<NameChange::Entry> entries);
  void set_data(Node node, DataChange change);
  void open(const FileOperation& operation);
  void sync(Node node);
  void sync_folder(Node folder);
  std::vector<std::string> variants(const Item& item) const;

  std::vector<Item> nodes_;
  Names live_, on_disk_;
  std::vector<NameChange> unsynced_;
  std::map<int64_t, Handle> handles_;
};

}  // namespace sluice
