#include "comm/store_connection.h"

#include <sys/socket.h>

#include <torch/csrc/distributed/c10d/exception.h>
#include <algorithm>
#include <cstdlib>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "base/numbers/crc32c.h"
#include "base/text/strings.h"
#include "comm/torch_reason.h"
#include "comm/without_name_servers.h"

namespace sluice::comm {
namespace {

constexpr int kWaitsBetweenForgetting = 256;
constexpr std::chrono::seconds kToConnect{60};  // name servers may be slow

uint32_t checksum_of(const std::string& key, std::string_view value) { return crc32c(value, crc32c(key)); }

// With its checksum. What is empty stays so: the store takes it for what nobody has set.
std::vector<uint8_t> sealed(const std::string& key, std::string_view value) {
  if (value.empty()) return {};
  ByteWriter bytes;
  bytes.number(checksum_of(key, value));
  bytes.raw(value);
  const std::string whole = bytes.take();
  return {whole.begin(), whole.end()};
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::milliseconds(std::max<int64_t>(1, static_cast<int64_t>(seconds * 1e3)));  // 0 would be: without end
}

// LibTorch gives its socket only in a text for people.
int socket_of(const c10d::TCPStore& store, int port) {
  const std::string text = store.repr();
  const size_t found = text.find("fd=");
  const int socket = found == std::string::npos ? -1 : std::atoi(text.c_str() + found + 3);
  SLUICE_CHECK(peer_port(socket) == port, "LibTorch does not tell the socket of its store: " + text);
  return socket;
}

std::string what_was_lost(const std::string& place, StoreLost::How how, double seconds) {
  if (how == StoreLost::How::kClosed)
    return "rank 0 has closed the connection to " + place + ", where it served the store of the run";
  return "rank 0 has not answered for " + fixed(seconds, 0) + " s at " + place + ", where it serves the store of the run";
}

}  // namespace

StoreLost::StoreLost(const std::string& place, How how, double seconds)
    : UserError(what_was_lost(place, how, seconds), "look at what rank 0 said last"), how_(how) {}

struct StoreConnection::Client {
  c10::intrusive_ptr<c10d::TCPStore> store;
  int socket = -1;  // the descriptor that it has
};

// What something does with the store, with errors of ours.
template <typename Call>
auto StoreConnection::guarded(Call call) {
  const auto begin = Clock::now();
  try {
    return call();
  } catch (const c10::DistStoreError& error) {
    throw_damaged("an answer (" + torch_reason(error) + ")");
  } catch (const std::exception&) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    throw StoreLost(place_.text(), seconds < .9 * answer_seconds_ ? StoreLost::How::kClosed : StoreLost::How::kSilent, seconds);
  }
}

StoreConnection::StoreConnection(const StorePlace& place, double answer_seconds)
    : place_(place), answer_seconds_(answer_seconds), client_(std::make_unique<Client>()) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(place.port);
  options.waitWorkers = false;
  options.timeout = kToConnect;
  const WithoutNameServers digits_only;
  client_->store = guarded([&] { return c10::make_intrusive<c10d::TCPStore>(place.digits, options); });
  client_->socket = socket_of(*client_->store, place.port);
  client_->store->setTimeout(milliseconds_of(answer_seconds));
  limit_waiting(client_->socket, answer_seconds);  // LibTorch itself waits for an answer without end
}

StoreConnection::~StoreConnection() = default;

void StoreConnection::set(const std::string& key, std::string_view value) {
  guarded([&] { client_->store->set(key, sealed(key, value)); });
}

std::string StoreConnection::set_first(const std::string& key, std::string_view value) {
  return opened(key, guarded([&] { return client_->store->compareSet(key, {}, sealed(key, value)); }));
}

bool StoreConnection::replace(const std::string& key, std::string_view from, std::string_view to) {
  const std::vector<uint8_t> wanted = sealed(key, to);
  return guarded([&] { return client_->store->compareSet(key, sealed(key, from), wanted) == wanted; });
}

std::optional<std::string> StoreConnection::wait_for(const std::string& key, Clock::time_point until) {
  const std::chrono::duration<double> left = until - Clock::now();
  // A wait that ends just as its answer comes ends for nothing: LibTorch drops that answer.
  if (!waited(key, milliseconds_of(left.count())) && !guarded([&] { return client_->store->check({key}); })) return {};
  return opened(key, guarded([&] { return client_->store->get(key); }), Empty::kDamaged);
}

// Asks first, because a question is answered at once or not at all, and a wait has an end of its own.
std::vector<std::string> StoreConnection::values(const std::vector<std::string>& keys) {
  const bool are_set = guarded([&] { return client_->store->check(keys); });
  SLUICE_CHECK(are_set, "keys of the store that nobody has set: " + join(keys, ", "));
  const auto all = guarded([&] { return client_->store->multiGet(keys); });
  std::vector<std::string> texts;
  for (size_t i = 0; i < keys.size(); ++i) texts.push_back(opened(keys[i], all.at(i)));
  return texts;
}

int64_t StoreConnection::add(const std::string& key, int64_t number) {
  return guarded([&] { return client_->store->add(key, number); });
}

void StoreConnection::push(const std::string& queue, std::string_view message) {
  guarded([&] { client_->store->queuePush(queue, sealed(queue, message)); });
}

std::optional<std::string> StoreConnection::pop(const std::string& queue, double seconds) {
  if (++waits_ >= kWaitsBetweenForgetting) forget_waits();
  if (!waited(queue, milliseconds_of(seconds))) return {};
  return opened(queue, guarded([&] { return client_->store->queuePop(queue, /*block=*/false); }), Empty::kDamaged);
}

std::string StoreConnection::opened(const std::string& key, const std::vector<uint8_t>& bytes, Empty empty) const {
  if (bytes.empty() && empty == Empty::kMayBe) return {};
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string_view value = all.substr(std::min(all.size(), sizeof(uint32_t)));
  if (!value.empty() && ByteReader(all).number<uint32_t>() == checksum_of(key, value)) return std::string(value);
  throw_damaged("'" + key + "'");
}

void StoreConnection::throw_damaged(const std::string& what) const {
  throw UserError(what + " came damaged out of the store of the run, which rank 0 serves at " + place_.text(),
                  "look for faults of the memory and the network of both machines");
}

bool StoreConnection::waited(const std::string& key, std::chrono::milliseconds at_most) {
  return guarded([&] {
    try {
      client_->store->wait({key}, at_most);
      return true;
    } catch (const c10::DistStoreError&) {
      return false;
    }
  });
}

// LibTorch's server keeps an entry for every wait for a queue, and goes through all of them at each message, until a wait of the
// same connection ends for nothing.
void StoreConnection::forget_waits() {
  waited("never set", std::chrono::milliseconds(1));
  waits_ = 0;
}

void StoreConnection::interrupt() { ::shutdown(client_->socket, SHUT_RDWR); }

c10d::Store& StoreConnection::torch_store() { return *client_->store; }

}  // namespace sluice::comm
