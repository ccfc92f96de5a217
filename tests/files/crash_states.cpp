#include "tests/files/crash_states.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <unordered_map>

namespace sluice {
namespace fs = std::filesystem;
namespace {

using Node = DiskModel::Node;
using Changes = std::vector<DiskModel::NameChange>;
using Taken = std::vector<bool>;     // of the unsynced changes of names, which are on the disk
using Choice = std::vector<size_t>;  // of each file, which of its possible bytes are on the disk
using Paths = std::vector<std::pair<fs::path, Node>>;

// The changes that are there when each folder would take as many of its own as `most` says: a change in two folders needs both.
Taken taken_by(const Changes& changes, const std::function<size_t(Node)>& most) {
  std::map<Node, size_t> seen;
  std::set<Node> stopped;
  Taken taken;
  for (const auto& [entries] : changes) {
    std::set<Node> folders;
    for (const auto& entry : entries) folders.insert(entry.folder);
    const bool takes =
        std::ranges::all_of(folders, [&](Node folder) { return !stopped.contains(folder) && seen[folder] < most(folder); });
    for (const Node folder : folders) {
      ++seen[folder];
      if (!takes) stopped.insert(folder);
    }
    taken.push_back(takes);
  }
  return taken;
}

// Every possible set of changes that begins with `taken`, until there are more than `most`.
void extend(const Changes& changes, Taken& taken, const std::set<Node>& stopped, size_t most, std::set<Taken>& found) {
  if (found.size() > most) return;
  if (taken.size() == changes.size()) {
    found.insert(taken);
    return;
  }
  const auto& change = changes[taken.size()];
  const bool may_be_there = std::ranges::none_of(stopped, [&](Node folder) { return change.touches(folder); });
  if (may_be_there) {
    taken.push_back(true);
    extend(changes, taken, stopped, most, found);
    taken.pop_back();
  }
  std::set<Node> more = stopped;
  for (const auto& entry : change.entries) more.insert(entry.folder);
  taken.push_back(false);
  extend(changes, taken, more, most, found);
  taken.pop_back();
}

std::set<Taken> choices_of_names(const Changes& changes, size_t most, std::mt19937_64& random) {
  std::set<Taken> all;
  Taken none;
  extend(changes, none, {}, most, all);
  if (all.size() <= most) return all;

  std::map<Node, size_t> count;
  for (const auto& [entries] : changes) {
    for (const auto& entry : entries) ++count[entry.folder];
  }
  std::set<Taken> some = {taken_by(changes, [](Node) { return 0; }),
                          taken_by(changes, [&](Node folder) { return count.at(folder); })};
  for (const auto& [one, of_one] : count) {
    some.insert(taken_by(changes, [one = one, of_one = of_one](Node folder) { return folder == one ? of_one : 0; }));
    some.insert(taken_by(changes, [&, one = one](Node folder) { return folder == one ? 0 : count.at(folder); }));
  }
  for (size_t i = 0; i < most / 4; ++i) {  // the other part of `most` is for choices of bytes
    std::map<Node, size_t> cut;
    for (const auto& [folder, of_folder] : count) cut[folder] = random() % (of_folder + 1);
    some.insert(taken_by(changes, [&](Node folder) { return cut.at(folder); }));
  }
  return some;
}

// `sizes`: how many possible bytes each file has, the first being the least and the last all that was written.
std::set<Choice> choices_of_bytes(const std::vector<size_t>& sizes, size_t most, bool each_file, std::mt19937_64& random) {
  size_t product = 1;
  for (const size_t size : sizes) product = std::min(product * size, most + 1);
  std::set<Choice> choices;
  if (product <= most) {
    Choice next(sizes.size());
    for (bool more = true; more;) {
      choices.insert(next);
      size_t i = 0;
      while (i < sizes.size() && ++next[i] == sizes[i]) next[i++] = 0;
      more = i < sizes.size();
    }
    return choices;
  }
  Choice all;
  for (const size_t size : sizes) all.push_back(size - 1);
  for (size_t k = 0; k < *std::ranges::max_element(sizes); ++k) {  // the same for all files
    Choice same;
    for (const size_t size : sizes) same.push_back(std::min(k, size - 1));
    choices.insert(same);
  }
  if (each_file) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      for (size_t k = 0; k < sizes[i]; ++k) {
        Choice one = all;
        one[i] = k;
        choices.insert(one);
      }
    }
  }
  for (size_t drawn = 0; drawn < most; ++drawn) {
    Choice choice;
    for (const size_t size : sizes) choice.push_back(random() % size);
    choices.insert(choice);
  }
  return choices;
}

void add_paths(const DiskModel& model, const DiskModel::Names& names, Node folder, const fs::path& at, Paths& paths) {
  for (const auto& [name, node] : names.at(folder)) {
    paths.emplace_back(at / name, node);
    if (model.kind(node) == FolderContent::Kind::kFolder) add_paths(model, names, node, at / name, paths);
  }
}

Paths paths_with(const DiskModel& model, const Taken& taken) {
  DiskModel::Names names = model.names_on_disk();
  for (size_t i = 0; i < taken.size(); ++i) {
    if (!taken[i]) continue;
    for (const auto& [folder, name, node] : model.unsynced_names()[i].entries) {
      if (node == DiskModel::kNothing) {
        names[folder].erase(name);
      } else {
        names[folder][name] = node;
      }
    }
  }
  Paths paths;
  add_paths(model, names, DiskModel::kRoot, {}, paths);
  return paths;
}

class Enumeration {
 public:
  Enumeration(const Recording& recording, const CrashOptions& options)
      : recording_(recording), options_(options), random_(options.seed) {}

  std::vector<CrashState> take() {
    DiskModel model(recording_.before);
    const size_t count = recording_.operations.size();
    for (size_t done = 0; done <= count; ++done) {
      if (done >= options_.first) add_states(model, done);
      if (done < count) model.apply(recording_.operations[done]);
    }
    return std::move(states_);
  }

 private:
  void add_states(const DiskModel& model, size_t done) {
    const Changes& changes = model.unsynced_names();
    const std::set<Taken> names = choices_of_names(changes, options_.most, random_);
    for (const Taken& taken : names) {
      const Paths paths = paths_with(model, taken);
      std::vector<size_t> sizes;
      for (const auto& [path, node] : paths) sizes.push_back(model.possible_bytes(node).size());
      const bool all_names = std::ranges::find(taken, false) == taken.end();
      for (const Choice& choice :
           choices_of_bytes(sizes, std::max<size_t>(1, options_.most / names.size()), all_names, random_)) {
        add_state(model, done, taken, paths, choice);
      }
    }
  }

  void add_state(const DiskModel& model, size_t done, const Taken& taken, const Paths& paths, const Choice& choice) {
    CrashState state;
    std::string key;
    state.how = "power cut after " + std::to_string(done) + " of " + std::to_string(recording_.operations.size()) + " operations";
    if (done > 0) state.how += ", the last being: " + text_of(recording_.operations[done - 1]);
    const auto there = std::ranges::count(taken, true);
    if (!taken.empty())
      state.how += "; " + std::to_string(there) + " of " + std::to_string(taken.size()) + " new names on the disk";
    for (size_t i = 0; i < paths.size(); ++i) {
      const auto& [path, node] = paths[i];
      const auto& possible = model.possible_bytes(node);
      const DiskModel::Bytes& bytes = possible[choice[i]];
      state.entries[path] = {model.kind(node), bytes};
      key += path.string() + '\0' + static_cast<char>('0' + static_cast<int>(model.kind(node))) + std::to_string(bytes->size()) +
             ':' + std::to_string(hash_of(bytes)) + '\0';
      if (possible.size() > 1) {
        state.how += "; bytes of " + path.string() + ": " + std::to_string(choice[i] + 1) + "/" + std::to_string(possible.size());
      }
    }
    state.operations = done;
    const auto [known, is_new] = index_.emplace(key, states_.size());
    if (is_new) {
      states_.push_back(std::move(state));
    } else {
      states_[known->second].operations = done;
      states_[known->second].how = std::move(state.how);
    }
  }

  // Once for each object, which most states share.
  size_t hash_of(const DiskModel::Bytes& bytes) {
    const auto [known, is_new] = hashes_.emplace(bytes, 0);
    if (is_new) known->second = std::hash<std::string>()(*bytes);
    return known->second;
  }

  const Recording& recording_;
  const CrashOptions& options_;
  std::mt19937_64 random_;
  std::vector<CrashState> states_;
  std::unordered_map<std::string, size_t> index_;
  std::unordered_map<DiskModel::Bytes, size_t> hashes_;
};

}  // namespace

std::vector<CrashState> crash_states(const Recording& recording, const CrashOptions& options) {
  return Enumeration(recording, options).take();
}

void materialize(const CrashState& state, const fs::path& folder) {
  fs::create_directories(folder);
  for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
  for (const auto& [path, entry] : state.entries) {
    switch (entry.kind) {
      case FolderContent::Kind::kFolder:
        fs::create_directory(folder / path);
        break;
      case FolderContent::Kind::kLink:
        fs::create_symlink(*entry.bytes, folder / path);
        break;
      case FolderContent::Kind::kFile:
        std::ofstream(folder / path, std::ios::binary) << *entry.bytes;
        break;
    }
  }
}

}  // namespace sluice
