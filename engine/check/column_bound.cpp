#include <algorithm>
#include <array>
#include <map>

#include "engine/check/check_draft.h"
#include "engine/memory/memory_bound.h"
#include "engine/plan/antichain.h"
#include "engine/plan/saturating.h"

// worst_column_bytes and worst_group_bytes of memory_bound.h.
namespace sluice::engine {
namespace {

// Text of a string column of which the contract says nothing: of a sample so many bytes a token; of a group (a prompt) that of
// one sample.
constexpr int64_t kTextBytesPerToken = 8;

/// Entries of each extent at once.
struct Entries {
  int64_t tokens = 0;
  int64_t samples = 0;
  int64_t groups = 0;
};

/// Bytes by what they grow with. They are bounded apart: one micro-batch may have many samples and another long ones.
using Bytes = std::array<int64_t, 3>;  // with tokens, samples, groups

/// A column as one node writes it: the writer itself or a filter that hands on what it keeps.
struct Copy {
  int column = 0;
  int writer = 0;
  std::vector<int> readers;  // nodes that must be done before it goes; filters that copy it among them
};

class ColumnBound {
 public:
  ColumnBound(const Plan& plan, const PlanPath& path) : plan_(plan), path_(path), maker_(path.maker()) {
    ancestors_.resize(plan.nodes.size());
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      for (const int input : plan.nodes[i].inputs) ancestors_.add_edge(input, static_cast<int>(i));
    }
    for (size_t c = 0; c < plan.columns.size(); ++c) {
      if (&plan.path_of(plan.columns[c].writer) == &path) add_copies(static_cast<int>(c));
    }
  }

  int64_t bytes(int64_t tokens) const {
    int64_t sum = alive(entries_of(tokens, path_.capacity.open_iterations));
    sum = saturating_sum(sum, being_packed());
    for (const Copy& copy : copies_) sum = saturating_sum(sum, unread(copy));
    return sum;
  }

  GroupBytes of_group() const {
    const int64_t samples = std::max<int64_t>(1, node(maker_).needs.samples_per_group), tokens = path_.capacity.group_tokens;
    GroupBytes bytes{.prompt = 0, .made = saturating_product(tokens, static_cast<int64_t>(sizeof(int64_t)))};
    for (const Copy& copy : copies_) {
      int64_t& sum = copy.writer == path_.source ? bytes.prompt : bytes.made;
      if (is_made_early(copy)) sum = saturating_sum(sum, sum_of(copy, {tokens, samples, 1}));
    }
    return bytes;
  }

 private:
  const PlanNode& node(int index) const { return plan_.nodes[static_cast<size_t>(index)]; }
  const PlanColumn& column(const Copy& copy) const { return plan_.columns[static_cast<size_t>(copy.column)]; }
  bool is_made_early(const Copy& copy) const { return copy.writer == path_.source || copy.writer == maker_; }

  // One copy for each stream in which somebody reads the column, and for those on the way there.
  void add_copies(int index) {
    const PlanColumn& column = plan_.columns[static_cast<size_t>(index)];
    const PlanNode& writer = node(column.writer);
    const int home = writer.needs.drops_groups ? column.writer : writer.stream;
    std::map<int, std::vector<int>> readers{{home, {}}};  // by stream
    for (const int reader : column.readers) {
      int stream = node(reader).stream;
      readers[stream].push_back(reader);
      for (; stream != home && stream >= 0; stream = node(stream).stream) readers[node(stream).stream].push_back(stream);
    }
    if (writer.needs.drops_groups) copies_.push_back({index, column.writer, {column.writer}});  // before it is thinned
    for (auto& [stream, of_stream] : readers) {
      const bool is_home = stream == home;
      if (is_home && of_stream.empty() && (column.writer == path_.source || column.writer == maker_)) of_stream.push_back(maker_);
      copies_.push_back({index, is_home ? column.writer : stream, of_stream});
    }
  }

  bool precedes(const Copy& first, const Copy& second) const {
    return !first.readers.empty() && std::all_of(first.readers.begin(), first.readers.end(),
                                                 [&](int reader) { return ancestors_.contains(second.writer, reader); });
  }

  Entries entries_of(int64_t tokens, int64_t iterations) const {
    const NodeNeeds& maker = node(maker_).needs;
    const int64_t least =
        path_.rollout ? 1 : std::max<int64_t>(1, maker.least_sample_tokens);  // a rollout may end a sample early
    const int64_t samples_of_group = std::max<int64_t>(1, maker.samples_per_group);
    const int64_t ranks = plan_.shares_making(path_) ? plan_.owners() : 1;  // whose groups it may make
    const int64_t groups = std::min(tokens / saturating_product(least, samples_of_group),
                                    saturating_product(saturating_product(iterations, ranks), path_.capacity.drawn_groups));
    return {tokens, saturating_product(groups, samples_of_group), groups};
  }

  // With actions taken as tokens.
  Bytes bytes_of(const Copy& copy, const Entries& entries) const {
    const ColumnSpec& spec = column(copy).spec;
    const int64_t entry = entry_bytes(spec.dtype);
    Bytes bytes{};
    const bool per_sample = spec.extent == Extent::kSample, per_group = spec.extent == Extent::kGroup;
    const size_t grows_with = per_group ? 2 : per_sample ? 1 : 0;
    const int64_t count = per_group ? entries.groups : per_sample ? entries.samples : entries.tokens;
    bytes[grows_with] = saturating_product(count, entry);
    if (spec.dtype != DType::kString) return bytes;
    const NodeNeeds& writer = node(column(copy).writer).needs;
    if (spec.name == writer.routes_column) {
      bytes[0] = saturating_sum(bytes[0], saturating_product(entries.tokens, route_bytes_of(plan_, writer)));
      return bytes;
    }
    const auto& bounds = writer.string_bytes;
    const auto bound = bounds.find(spec.name);
    if (bound != bounds.end()) {
      bytes[grows_with] = saturating_product(count, saturating_sum(entry, bound->second + 1));
    } else {
      const int64_t samples = per_group ? std::max<int64_t>(1, node(maker_).needs.samples_per_group) : 1;
      bytes[0] = saturating_sum(bytes[0], saturating_product(entries.tokens / samples + 1, kTextBytesPerToken));
    }
    return bytes;
  }

  int64_t alive(const Entries& entries) const {
    int64_t sum = 0;
    for (size_t kind = 0; kind < Bytes().size(); ++kind) {
      std::vector<int64_t> weights;
      for (const Copy& copy : copies_) weights.push_back(copy.readers.empty() ? 0 : bytes_of(copy, entries)[kind]);
      sum =
          saturating_sum(sum, heaviest_antichain(weights, [&](size_t a, size_t b) { return precedes(copies_[a], copies_[b]); }));
    }
    return sum;
  }

  int64_t sum_of(const Copy& copy, const Entries& entries) const {
    const Bytes bytes = bytes_of(copy, entries);
    return saturating_sum(bytes[0], saturating_sum(bytes[1], bytes[2]));
  }

  // While a micro-batch is packed the columns of its groups are there twice. A group that waits to be admitted has no credit yet.
  int64_t being_packed() const {
    const Entries batch = entries_of(path_.capacity.micro_batch_tokens, 1), waiting = entries_of(path_.capacity.group_tokens, 1);
    int64_t sum = 0;
    for (const Copy& copy : copies_) {
      if (is_made_early(copy)) sum = saturating_sum(sum, sum_of(copy, batch));
      if (copy.writer == path_.source) sum = saturating_sum(sum, sum_of(copy, waiting));
    }
    return sum;
  }

  // What nobody reads goes when its writer is done.
  int64_t unread(const Copy& copy) const {
    if (!copy.readers.empty()) return 0;
    const PlanCapacity& capacity = path_.capacity;
    return sum_of(copy, entries_of(node(copy.writer).is_barrier() ? capacity.iteration_tokens : capacity.micro_batch_tokens, 1));
  }

  const Plan& plan_;
  const PlanPath& path_;
  const int maker_;
  checking::Ancestors ancestors_;
  std::vector<Copy> copies_;
};

}  // namespace

int64_t worst_column_bytes(const Plan& plan, const PlanPath& path, int64_t tokens) {
  return ColumnBound(plan, path).bytes(tokens);
}

GroupBytes worst_group_bytes(const Plan& plan, const PlanPath& path) { return ColumnBound(plan, path).of_group(); }

}  // namespace sluice::engine
