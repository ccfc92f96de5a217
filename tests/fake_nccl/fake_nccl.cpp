// A library with NCCL's C interface for ranks that are threads of one process and memory of the host. As NCCL, it carries out a
// group when it ends; other than NCCL, it has done so when the call returns.

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int kSuccess = 0, kInvalidArgument = 4, kInternalError = 3, kFloat = 7;

struct Id {
  std::array<char, 128> bytes;
};

struct Group {
  std::mutex mutex;
  std::condition_variable changed;
  int ranks = 0, joined = 0;
  bool aborted = false;
  std::map<std::pair<int, int>, std::deque<std::vector<float>>> on_the_way;  // by who sends and who gets
};

struct Communicator {
  std::shared_ptr<Group> group;
  int rank = 0;
};

struct Call {
  bool sends = false;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;
  int other = 0;
  Communicator* communicator = nullptr;
};

struct World {
  std::mutex mutex;
  int made = 0;
  std::map<std::string, std::shared_ptr<Group>> groups;
};

World& world() {
  static World all;
  return all;
}

thread_local int depth = 0;
thread_local void* last_stream = nullptr;
thread_local std::vector<Call> calls;

int send_now(const Call& call) {
  Group& group = *call.communicator->group;
  const std::lock_guard lock(group.mutex);
  if (group.aborted) return kInternalError;
  const auto* floats = static_cast<const float*>(call.from);
  group.on_the_way[{call.communicator->rank, call.other}].emplace_back(floats, floats + call.count);
  group.changed.notify_all();
  return kSuccess;
}

int receive_now(const Call& call) {
  Group& group = *call.communicator->group;
  std::unique_lock lock(group.mutex);
  auto& waiting = group.on_the_way[{call.other, call.communicator->rank}];
  group.changed.wait(lock, [&] { return group.aborted || !waiting.empty(); });
  if (group.aborted) return kInternalError;
  const std::vector<float> floats = std::move(waiting.front());
  waiting.pop_front();
  if (floats.size() != call.count) return kInvalidArgument;
  std::memcpy(call.to, floats.data(), floats.size() * sizeof(float));
  return kSuccess;
}

int carry_out() {
  int result = kSuccess;
  const std::vector<Call> all = std::exchange(calls, {});
  for (const bool sends : {true, false}) {
    for (const Call& call : all)
      if (call.sends == sends && result == kSuccess) result = sends ? send_now(call) : receive_now(call);
  }
  return result;
}

int add(const Call& call, int type) {
  if (type != kFloat || call.other < 0 || call.other >= call.communicator->group->ranks) return kInvalidArgument;
  calls.push_back(call);
  return depth > 0 ? kSuccess : carry_out();
}

}  // namespace

extern "C" {

int ncclGetUniqueId(Id* id) {
  const std::lock_guard lock(world().mutex);
  id->bytes.fill('\0');
  const std::string name = "group " + std::to_string(++world().made);
  std::memcpy(id->bytes.data(), name.data(), name.size());
  return kSuccess;
}

int ncclCommInitRank(Communicator** made, int ranks, Id id, int rank) {
  if (rank < 0 || rank >= ranks) return kInvalidArgument;
  std::shared_ptr<Group> group;
  {
    const std::lock_guard lock(world().mutex);
    std::shared_ptr<Group>& found = world().groups[id.bytes.data()];
    if (!found) found = std::make_shared<Group>();
    group = found;
  }
  std::unique_lock lock(group->mutex);
  group->ranks = ranks;
  ++group->joined;
  group->changed.notify_all();
  group->changed.wait(lock, [&] { return group->joined >= ranks; });
  *made = new Communicator{group, rank};
  return kSuccess;
}

int ncclCommAbort(Communicator* communicator) {
  {
    const std::lock_guard lock(communicator->group->mutex);
    communicator->group->aborted = true;
    communicator->group->changed.notify_all();
  }
  delete communicator;
  return kSuccess;
}

int ncclCommDestroy(Communicator* communicator) {
  delete communicator;
  return kSuccess;
}

// Not NCCL's: the stream of the calling thread's last piece.
void* fake_nccl_stream() { return last_stream; }

int ncclSend(const void* from, size_t count, int type, int rank, Communicator* communicator, void* stream) {
  last_stream = stream;
  return add({.sends = true, .from = from, .count = count, .other = rank, .communicator = communicator}, type);
}

int ncclRecv(void* to, size_t count, int type, int rank, Communicator* communicator, void* stream) {
  last_stream = stream;
  return add({.to = to, .count = count, .other = rank, .communicator = communicator}, type);
}

int ncclGroupStart() {
  ++depth;
  return kSuccess;
}

int ncclGroupEnd() { return --depth > 0 ? kSuccess : carry_out(); }

const char* ncclGetErrorString(int result) { return result == kInternalError ? "internal error" : "invalid argument"; }
}
