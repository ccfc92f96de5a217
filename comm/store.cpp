#include "comm/store.h"

#include <c10/util/Logging.h>
#include <c10/util/hash.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "base/text/strings.h"
#include "comm/find_store.h"
#include "comm/verdict.h"

namespace sluice::comm {
namespace {

void check(const JoinOptions& options) {
  const std::string rank = std::to_string(options.rank), size = std::to_string(options.size);
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size)
    throw UserError("there is no rank " + rank + " of " + size + " ranks", "ranks are numbered from 0");
  if (options.port < 1 || options.port > 65535) {
    throw UserError(std::to_string(options.port) + " is not a port", "a port is a number from 1 to 65535");
  }
  const bool is_open = options.several_machines || !is_loopback(options.host);
  if (is_open && options.key.empty()) {
    throw UserError("others than this machine could join the run at " + options.host + ":" + std::to_string(options.port) +
                        ", and it has no key",
                    "set SLUICE_CLUSTER_KEY in the environment of all ranks to one text that nobody can guess, or let rank 0 "
                    "serve 127.0.0.1");
  }
}

// The key itself does not go over the network.
std::string hash_of(const std::string& key) { return c10::sha1("key of a run: " + key).str(); }

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

struct Arrival {
  std::string hash;
  Member member;

  std::string bytes() const {
    ByteWriter writer;
    writer.text(hash);
    writer.text(member.host);
    writer.number(member.pid);
    return writer.take();
  }
};

Arrival arrival_of(const std::string& text) {
  ByteReader bytes(text);
  Arrival arrival;
  arrival.hash = bytes.text();
  arrival.member.host = bytes.text();
  arrival.member.pid = bytes.whole_number();
  return arrival;
}

// "rank 2", "ranks 1, 2 and 5".
std::string named(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

constexpr const char* kJoin = "join";
constexpr const char* kHelpOfKeys = "SLUICE_CLUSTER_KEY in the environment of all ranks must be the same";

std::string another_key(const std::vector<int>& ranks) {
  return named(ranks) + (ranks.size() == 1 ? " has" : " have") + " another key than rank 0";
}

using HandedIn = std::vector<std::optional<std::string>>;

std::vector<int> missing(const HandedIn& arrivals) {
  std::vector<int> ranks;
  for (size_t rank = 0; rank < arrivals.size(); ++rank) {
    if (!arrivals[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<int> with_another_key(const HandedIn& arrivals) {
  const std::string right = arrival_of(*arrivals.front()).hash;
  std::vector<int> ranks;
  for (size_t rank = 0; rank < arrivals.size(); ++rank) {
    if (arrival_of(*arrivals[rank]).hash != right) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

// The facts are the arrivals of all.
Verdict judge_arrivals(const HandedIn& arrivals, double seconds) {
  if (const auto ranks = missing(arrivals); !ranks.empty()) {
    return {
        .problem = named(ranks) + " of " + std::to_string(arrivals.size()) + " did not come within " + fixed(seconds, 0) + " s",
        .help = "look at what they say; all ranks need the host and port of rank 0"};
  }
  if (const auto ranks = with_another_key(arrivals); !ranks.empty()) return {.problem = another_key(ranks), .help = kHelpOfKeys};
  ByteWriter facts;
  for (const auto& arrival : arrivals) facts.text(*arrival);
  return {.facts = facts.take()};
}

// A rank that rank 0 does not know of would wait for nothing.
void compare_sizes(StoreConnection& connection, const engine::World& world, Clock::time_point until) {
  const std::string mine = std::to_string(world.size);
  if (world.rank == 0) connection.set("join/size", mine);
  const auto of_rank_0 = connection.wait_for("join/size", until);
  if (!of_rank_0) throw UserError("rank 0 has not said how many ranks there are", "look at what rank 0 said last");
  if (*of_rank_0 != mine) {
    throw UserError("rank " + std::to_string(world.rank) + " was told of " + mine + " ranks, and rank 0 of " + *of_rank_0,
                    "start all ranks with the same number of ranks, or give each run another port");
  }
}

bool set_log_level() {
  constexpr int kFatal = 3;  // what fails is thrown, too
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = std::max(FLAGS_caffe2_log_level, kFatal);
  return true;
}

// It tells, with a trace, of each wait that was for nothing and of each connection that breaks. Once, however many threads join.
void keep_torch_quiet() { [[maybe_unused]] static const bool is_set = set_log_level(); }

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Store::Store(const JoinOptions& options)
    : options_(options),
      world_{.rank = options.rank, .size = options.size},
      place_{.host = options.host, .port = options.port, .digits = {}} {
  check(options);
  keep_torch_quiet();
  const auto time = duration_of(options.join_seconds);
  if (world_.rank == 0 && !options.served) {
    // Many machines know their own name as an address that no other one reaches.
    const bool everywhere = options.several_machines && is_loopback(options.host);
    server_ = std::make_unique<StoreServer>(options.host, options.port, everywhere);
    place_.digits = server_->address();
  } else {
    place_.digits = find_store(options.host, options.port, Clock::now() + time, options.join_seconds);
  }
  const auto connection = connect();
  join(*connection, Clock::now() + time);
}

void Store::join(StoreConnection& connection, Clock::time_point until) {
  compare_sizes(connection, world_, until);
  const Arrival mine{.hash = hash_of(options_.key), .member = {.host = host_name(), .pid = ::getpid()}};
  const bool takes_place = options_.may_come_back && has_handed_in(connection, kJoin, world_.rank);
  const Judge of_arrivals = [&](const HandedIn& arrivals) { return judge_arrivals(arrivals, options_.join_seconds); };
  const std::string facts =
      takes_place ? facts_of(connection, kJoin, until) : all_agree(connection, world_, kJoin, mine.bytes(), until, of_arrivals);
  ByteReader bytes(facts);
  std::vector<Arrival> arrivals;
  for (int rank = 0; rank < world_.size; ++rank) arrivals.push_back(arrival_of(std::string(bytes.text())));
  for (const Arrival& arrival : arrivals) members_.push_back(arrival.member);
  if (!takes_place) return;
  if (arrivals.front().hash != mine.hash) throw UserError(another_key({world_.rank}), kHelpOfKeys);
  return_.emplace(connection, world_.rank, mine.member, until);
  members_[static_cast<size_t>(world_.rank)] = mine.member;
}

void Store::come_back() const { return_.value().announce(*connect()); }

std::string Store::own_address() const {
  if (!options_.several_machines && is_loopback(options_.host)) return place_.digits;
  const std::string own = own_address_towards(place_.digits, place_.port);
  return own.empty() ? host_name() : own;
}

std::unique_ptr<StoreConnection> Store::connect() const {
  return std::make_unique<StoreConnection>(place_, options_.answer_seconds);
}

}  // namespace sluice::comm
