#include "netlink/virtual_addresses.h"

#include <linux/rtnetlink.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "netlink/request_socket.h"
#include "netlink/virtual_addresses_wire.h"

namespace shunt::netlink {

using namespace address_wire;  // NOLINT(google-build-using-namespace): its only user

namespace {

using Addresses = Result<std::vector<net::IpAddress>>;
using What = VirtualAddresses::Change::What;

constexpr char kRuleWhat[] = "rule for the addresses of Services";

// Of `one`, alone.
Result<> command(RequestSocket& socket, const Requests& one) {
  return socket.ask(one, [](AttributeBytes) {});
}

// 0: there is none.
Result<int> device_index(RequestSocket& socket) {
  Requests question;
  encode_get_device(question, VirtualAddresses::kDevice);
  int index = 0;
  auto asked =
      socket.ask(question, [&](AttributeBytes payload) { index = decode_device(payload); });
  if (!asked && asked.error().sys_errno != ENODEV) {
    return fail(std::string("device ") + VirtualAddresses::kDevice, asked.error());
  }
  return index;
}

// `decode` answers an address or nothing. A table that nobody has put a route into is not there
// (ENOENT).
template <typename Decode>
Addresses list(RequestSocket& socket, const Requests& question, const Decode& decode) {
  std::vector<net::IpAddress> out;
  auto asked = ask_until_whole(
      socket,
      question,
      [&] { out.clear(); },
      [&](AttributeBytes payload) {
        if (const std::optional<net::IpAddress> one = decode(payload)) {
          out.push_back(*one);
        }
      });
  if (!asked && asked.error().sys_errno != ENOENT) {
    return tl::unexpected(std::move(asked.error()));
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Addresses list_addresses(RequestSocket& socket, net::Family family, int device) {
  Requests question;
  encode_list_addresses(question, family, device);
  auto out = list(socket, question, [&](AttributeBytes payload) {
    return decode_address(payload, family, device);
  });
  return out ? std::move(out) : fail("addresses of Services", out.error());
}

Addresses list_routes(RequestSocket& socket, net::Family family, const LocalRoute& route) {
  Requests question;
  encode_list_routes(question, family, route);
  auto out = list(socket, question, [&](AttributeBytes payload) {
    return decode_route(payload, family, route);
  });
  return out ? std::move(out) : fail("routes to addresses of Services", out.error());
}

bool takes_away(What what) {
  return what == What::Unbind || what == What::Unroute || what == What::MakeNotLocal;
}

bool needs_device(What what) { return what != What::Route && what != What::Unroute; }

bool is_so_already(What what, int sys_errno) {
  if (!takes_away(what)) {
    return sys_errno == EEXIST;
  }
  return sys_errno == ENOENT || sys_errno == ESRCH || sys_errno == EADDRNOTAVAIL ||
         sys_errno == ENODEV;
}

const char* word(What what) {
  switch (what) {
    case What::Bind:
      return "bind ";
    case What::Unbind:
      return "unbind ";
    case What::Route:
      return "add the route to ";
    case What::Unroute:
      return "remove the route to ";
    case What::MakeLocal:
      return "make local ";
    case What::MakeNotLocal:
      return "make not local ";
  }
  return "";
}

Error error_of(const VirtualAddresses::Change& change, const Error& reason) {
  return {
      reason.code,
      reason.sys_errno,
      word(change.what) + net::to_string(change.address) + ": " + reason.what};
}

Error error_of(const VirtualAddresses::Change& change, int sys_errno) {
  // Of what is to be there: an address that no device can have.
  const Errc code = sys_errno == EADDRNOTAVAIL ? Errc::Invalid : request_errc(sys_errno);
  return error_of(change, {code, sys_errno, std::strerror(sys_errno)});
}

// Requests, and which change each is of.
struct Encoded {
  Requests requests;
  std::vector<std::size_t> change;
  std::vector<bool> may_fail;

  void note(std::size_t index, bool may_fail_too = false) {
    change.push_back(index);
    may_fail.push_back(may_fail_too);
  }
};

// Changes as requests. The kernel makes an address of IPv6 local some time after it was bound, so
// what it is not to be afterwards has to wait until then: a second round.
class Encoder {
 public:
  explicit Encoder(int device) : device_(device) {}

  void encode(std::size_t index, const VirtualAddresses::Change& change) {
    const net::IpAddress& ip = change.address;
    if (ip.family == net::Family::IPv6 && needs_device(change.what)) {
      if (change.what == What::MakeNotLocal) {
        not_local_[ip] = index;
        return;
      }
      note_ipv6(change);
    }
    Requests& to = first_.requests;
    switch (change.what) {
      case What::Bind:
        encode_address(to, Verb::Add, ip, device_);
        break;
      case What::Unbind:
        encode_address(to, Verb::Remove, ip, device_);
        break;
      case What::Route:
        encode_route(to, Verb::Add, ip, {VirtualAddresses::kRouteTable, kLoopbackIndex});
        break;
      case What::Unroute:
        encode_route(to, Verb::Remove, ip, {VirtualAddresses::kRouteTable, kLoopbackIndex});
        break;
      case What::MakeLocal:
        make_local(index, ip);
        break;
      case What::MakeNotLocal:
        encode_route(to, Verb::Remove, ip, {RT_TABLE_LOCAL, device_});
        break;
    }
    first_.note(index);
  }

  const Encoded& first_round() const { return first_; }
  Encoded second_round() const {
    Encoded out;
    for (const auto& [ip, index] : not_local_) {
      encode_route(out.requests, Verb::Remove, ip, {RT_TABLE_LOCAL, device_});
      out.note(index);
    }
    return out;
  }
  // Those that the kernel is about to make local, sorted: what it refused was there before, or is
  // not there.
  std::vector<net::IpAddress> fresh(const std::vector<RefusedRequest>& refused) const {
    std::vector<net::IpAddress> out;
    for (const auto& [ip, request] : fresh_) {
      if (!std::ranges::binary_search(refused, request, {}, &RefusedRequest::index)) {
        out.push_back(ip);
      }
    }
    return out;
  }
  // The change that wants the address not to be local.
  std::optional<std::size_t> not_local(const net::IpAddress& ip) const {
    const auto found = not_local_.find(ip);
    return found == not_local_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void note_ipv6(const VirtualAddresses::Change& change) {
    if (change.what != What::Bind) {
      not_local_.erase(change.address);
    }
    if (change.what == What::Unbind) {
      fresh_.erase(change.address);
    } else {
      const std::size_t before = change.what == What::MakeLocal ? 1 : 0;
      fresh_[change.address] = first_.requests.count() + before;
    }
  }
  // Nobody but the kernel can put a route of IPv6 on a device that is down: it does when the
  // address is bound.
  void make_local(std::size_t index, const net::IpAddress& ip) {
    if (ip.family == net::Family::IPv4) {
      encode_route(first_.requests, Verb::Add, ip, {RT_TABLE_LOCAL, device_});
      return;
    }
    encode_address(first_.requests, Verb::Remove, ip, device_);
    first_.note(index, true);
    encode_address(first_.requests, Verb::Add, ip, device_);
  }

  int device_;
  Encoded first_;
  std::map<net::IpAddress, std::size_t> not_local_;
  std::map<net::IpAddress, std::size_t> fresh_;  // the request that binds it
};

// Sends, and adds what was refused of the changes.
Result<std::vector<RefusedRequest>> send(
    RequestSocket& socket,
    const Encoded& encoded,
    std::span<const VirtualAddresses::Change> changes,
    std::vector<VirtualAddresses::Refused>& refused) {
  std::vector<RefusedRequest> raw;
  if (auto sent = socket.send_each(encoded.requests, raw); !sent) {
    return fail("addresses of Services", sent.error());
  }
  for (const RefusedRequest& one : raw) {
    const std::size_t index = encoded.change[one.index];
    if (!encoded.may_fail[one.index] && !is_so_already(changes[index].what, one.sys_errno)) {
      refused.push_back({index, error_of(changes[index], one.sys_errno)});
    }
  }
  return raw;
}

// Waits for the kernel to make local what is `fresh`, and answers those of which it does not: a
// work queue of its own does it, within a millisecond as a rule, and every one needs the lock of
// rtnetlink. Gives up after two seconds without any progress.
Addresses not_made_local(
    RequestSocket& socket, std::vector<net::IpAddress> fresh, const LocalRoute& local) {
  using std::chrono::milliseconds;
  constexpr milliseconds kPatience(2000);
  constexpr milliseconds kLongestPause(50);
  milliseconds pause(1);
  milliseconds waited(0);
  while (!fresh.empty()) {
    auto there = list_routes(socket, net::Family::IPv6, local);
    if (!there) {
      return there;
    }
    const bool progress = std::erase_if(fresh, [&](const net::IpAddress& ip) {
                            return std::ranges::binary_search(*there, ip);
                          }) > 0;
    waited = progress ? milliseconds(0) : waited + pause;
    if (fresh.empty() || waited > kPatience) {
      break;
    }
    std::this_thread::sleep_for(pause);  // nothing to wait on that could not be lost
    pause = std::min(pause * 2, kLongestPause);
  }
  return fresh;
}

}  // namespace

VirtualAddresses::VirtualAddresses(
    net::Family family, std::uint32_t mark, std::unique_ptr<RequestSocket> socket)
    : family_(family), mark_(mark), socket_(std::move(socket)) {}
VirtualAddresses::~VirtualAddresses() = default;

Result<std::unique_ptr<VirtualAddresses>> VirtualAddresses::open(
    net::Family family, std::uint32_t mark) {
  auto socket = RequestSocket::open_route();
  if (!socket) {
    return fail("addresses of Services", socket.error());
  }
  return std::unique_ptr<VirtualAddresses>(new VirtualAddresses(family, mark, std::move(*socket)));
}

Result<> VirtualAddresses::set_up() {
  const auto device = device_index(*socket_);
  if (!device) {
    return tl::unexpected(device.error());
  }
  if (*device == 0) {
    Requests make;
    encode_add_dummy(make, kDevice);
    if (auto made = command(*socket_, make); !made && made.error().sys_errno != EEXIST) {
      return fail(std::string("device ") + kDevice, made.error());
    }
  }
  return keep_rules(true);
}

struct VirtualAddresses::Rules {
  bool ours = false;             // the one that there should be
  std::vector<MarkRule> others;  // an earlier run may have had another mark
};

Result<VirtualAddresses::Rules> VirtualAddresses::find_rules() {
  const MarkRule ours{kRulePriority, mark_, mark_, kRouteTable};
  Requests question;
  encode_list_rules(question, family_);
  Rules found;
  auto asked = ask_until_whole(
      *socket_,
      question,
      [&] { found = {}; },
      [&](AttributeBytes payload) {
        const auto rule = decode_rule(payload, family_);
        if (rule && *rule == ours && !found.ours) {
          found.ours = true;
        } else if (rule && rule->table == kRouteTable) {
          found.others.push_back(*rule);
        }
      });
  if (!asked) {
    return fail(kRuleWhat, asked.error());
  }
  return found;
}

Result<bool> VirtualAddresses::has_rule() {
  return find_rules().map([](const Rules& found) { return found.ours; });
}

// Leaves one rule or none that leads to our table.
Result<> VirtualAddresses::keep_rules(bool wanted) {
  const auto found = find_rules();
  if (!found) {
    return tl::unexpected(found.error());
  }
  const MarkRule ours{kRulePriority, mark_, mark_, kRouteTable};
  Requests changes;
  for (const MarkRule& rule : found->others) {
    encode_rule(changes, Verb::Remove, family_, rule);
  }
  if (found->ours != wanted) {
    encode_rule(changes, wanted ? Verb::Add : Verb::Remove, family_, ours);
  }
  std::vector<RefusedRequest> refused;
  if (auto sent = socket_->send_each(changes, refused); !sent) {
    return fail(kRuleWhat, sent.error());
  }
  for (const RefusedRequest& one : refused) {
    if (one.sys_errno != EEXIST && one.sys_errno != ENOENT) {
      return request_failure(kRuleWhat, one.sys_errno);
    }
  }
  return {};
}

Result<std::vector<net::IpAddress>> VirtualAddresses::bound() {
  const auto device = device_index(*socket_);
  if (!device) {
    return tl::unexpected(device.error());
  }
  return *device == 0 ? Addresses() : list_addresses(*socket_, family_, *device);
}

Result<std::vector<net::IpAddress>> VirtualAddresses::local_routes() {
  const auto device = device_index(*socket_);
  if (!device) {
    return tl::unexpected(device.error());
  }
  return *device == 0 ? Addresses() : list_routes(*socket_, family_, {RT_TABLE_LOCAL, *device});
}

Result<std::vector<net::IpAddress>> VirtualAddresses::routes() {
  return list_routes(*socket_, family_, {kRouteTable, kLoopbackIndex});
}

Result<> VirtualAddresses::apply(std::span<const Change> changes, std::vector<Refused>& refused) {
  refused.clear();
  int device = 0;
  if (std::any_of(changes.begin(), changes.end(), [](const Change& change) {
        return needs_device(change.what);
      })) {
    const auto found = device_index(*socket_);
    if (!found) {
      return tl::unexpected(found.error());
    }
    device = *found;
  }
  Encoder encoder(device);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    if (change.address.family != family_) {
      refused.push_back({i, error_of(change, {Errc::Invalid, 0, "of another family"})});
    } else if (device != 0 || !needs_device(change.what)) {
      encoder.encode(i, change);
    } else if (!takes_away(change.what)) {
      refused.push_back({i, error_of(change, {Errc::NotFound, ENODEV, "there is no device"})});
    }
  }
  const auto raw = send(*socket_, encoder.first_round(), changes, refused);
  if (!raw) {
    return tl::unexpected(raw.error());
  }
  const auto late = not_made_local(*socket_, encoder.fresh(*raw), {RT_TABLE_LOCAL, device});
  if (!late) {
    return tl::unexpected(late.error());
  }
  for (const net::IpAddress& ip : *late) {
    if (const auto index = encoder.not_local(ip)) {
      const Error reason{Errc::Again, ETIMEDOUT, "the kernel has not made it local yet"};
      refused.push_back({*index, error_of(changes[*index], reason)});
    }
  }
  if (auto sent = send(*socket_, encoder.second_round(), changes, refused); !sent) {
    return tl::unexpected(sent.error());
  }
  std::sort(refused.begin(), refused.end(), [](const Refused& a, const Refused& b) {
    return a.index < b.index;
  });
  return {};
}

Result<> VirtualAddresses::remove_all(const std::vector<net::IpAddress>& addresses, What what) {
  std::vector<Change> changes;
  changes.reserve(addresses.size());
  for (const net::IpAddress& ip : addresses) {
    changes.push_back({what, ip});
  }
  std::vector<Refused> refused;
  if (auto applied = apply(changes, refused); !applied) {
    return applied;
  }
  return refused.empty() ? Result<>() : tl::unexpected(std::move(refused.front().error));
}

Result<> VirtualAddresses::tear_down() {
  if (auto kept = keep_rules(false); !kept) {
    return kept;
  }
  const auto routed = routes();
  if (!routed) {
    return tl::unexpected(routed.error());
  }
  if (auto removed = remove_all(*routed, What::Unroute); !removed) {
    return removed;
  }
  const auto device = device_index(*socket_);
  if (!device || *device == 0) {
    return device ? Result<>() : tl::unexpected(device.error());
  }
  const net::Family other = family_ == net::Family::IPv4 ? net::Family::IPv6 : net::Family::IPv4;
  const auto others = list_addresses(*socket_, other, *device);
  if (others && !others->empty()) {
    const auto ours = list_addresses(*socket_, family_, *device);
    return ours ? remove_all(*ours, What::Unbind) : tl::unexpected(ours.error());
  }
  Requests removal;
  encode_remove_device(removal, *device);
  if (auto gone = command(*socket_, removal); !gone && gone.error().sys_errno != ENODEV) {
    return fail(std::string("device ") + kDevice, gone.error());
  }
  return {};
}

}  // namespace shunt::netlink
