#include "bench/raw_graph.h"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::bench {
namespace {

namespace flow = oneapi::tbb::flow;

// So many messages are in a raw graph at once: enough that nobody waits, few enough that they stay in the cache.
constexpr int64_t kInFlight = 256;

class RawInline final : public RawGraph {
 public:
  explicit RawInline(int nodes) : sums_(static_cast<size_t>(nodes)) {
    for (int64_t& sum : sums_) {
      nodes_.push_back(std::make_unique<Node>(graph_, flow::serial, [&sum](const Message& message) {
        sum += *message.number;
        return message;
      }));
      if (nodes_.size() > 1) flow::make_edge(*nodes_[nodes_.size() - 2], *nodes_.back());
    }
  }

  void run(int64_t count) override {
    for (int64_t sent = 0; sent < count;) {
      for (const int64_t end = std::min(count, sent + kInFlight); sent < end; ++sent) {
        nodes_.front()->try_put({.sequence = sent, .number = std::make_shared<const int64_t>(sent)});
      }
      graph_.wait_for_all();
    }
  }

 private:
  using Node = flow::function_node<Message, Message>;

  oneapi::tbb::global_control one_thread_{oneapi::tbb::global_control::max_allowed_parallelism, 1};
  flow::graph graph_;
  std::vector<int64_t> sums_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

using AsyncNode = flow::async_node<Message, Message>;

// A thread with a queue.
class Place {
 public:
  ~Place() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void submit(Message message, AsyncNode::gateway_type& gateway) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back({std::move(message), &gateway});
    }
    wake_.notify_one();
  }

 private:
  struct Work {
    Message message;
    AsyncNode::gateway_type* gateway;
  };

  void loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (ending_) return;
      const Work work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      sum_ += *work.message.number;
      work.gateway->try_put(work.message);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Work> queue_;
  bool ending_ = false;
  int64_t sum_ = 0;
  std::thread thread_{[this] { loop(); }};
};

class RawHops final : public RawGraph {
 public:
  explicit RawHops(int nodes) : places_(2) {
    for (int i = 0; i < nodes; ++i) {
      Place& place = places_[static_cast<size_t>(i % 2)];
      nodes_.push_back(std::make_unique<AsyncNode>(
          graph_, flow::serial,
          [&place](const Message& message, AsyncNode::gateway_type& gateway) { place.submit(message, gateway); }));
      if (i > 0) flow::make_edge(flow::output_port<0>(*nodes_[static_cast<size_t>(i) - 1]), *nodes_.back());
    }
    flow::make_edge(flow::output_port<0>(*nodes_.back()), end_);
  }

  // Waits until there is room for another message, and in the end until all have come out; the last node tells.
  void run(int64_t count) override {
    arrived_ = 0;
    for (int64_t sent = 0; sent < count; ++sent) {
      if (sent - arrived_.load() >= kInFlight) wait_for(sent - kInFlight / 2);
      nodes_.front()->try_put({.sequence = sent, .number = std::make_shared<const int64_t>(sent)});
    }
    wait_for(count);
    graph_.wait_for_all();
  }

 private:
  void wait_for(int64_t count) {
    for (int64_t seen = arrived_.load(); seen < count; seen = arrived_.load()) arrived_.wait(seen);
  }

  flow::graph graph_;
  std::vector<Place> places_;
  std::vector<std::unique_ptr<AsyncNode>> nodes_;
  std::atomic<int64_t> arrived_{0};
  flow::function_node<Message> end_{graph_, flow::serial, [this](const Message&) {
                                      arrived_.fetch_add(1);
                                      arrived_.notify_one();
                                    }};
};

}  // namespace

std::unique_ptr<RawGraph> raw_inline(int nodes) { return std::make_unique<RawInline>(nodes); }
std::unique_ptr<RawGraph> raw_hops(int nodes) { return std::make_unique<RawHops>(nodes); }

}  // namespace sluice::bench
