#include "netlink/ipvs.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "netlink/ipvs_wire.h"
#include "netlink/request_socket.h"

namespace shunt::netlink::ipvs {
namespace {

// The kernel says ESRCH of a virtual server that is not there. ENOENT is said of a destination that
// is not there, and of a scheduler that no module has.
Errc errc_of(std::optional<Verb> verb, int sys_errno) {
  const bool names_scheduler = verb == Verb::NewServer || verb == Verb::SetServer;
  if (sys_errno == ENOENT && names_scheduler) {
    return Errc::Unsupported;
  }
  return request_errc(sys_errno);
}

Error error_of(AttributeBytes request, int sys_errno) {
  const auto verb = verb_of(request);
  const Errc code = errc_of(verb, sys_errno);
  std::string what = describe(request);
  what.append(": ").append(
      sys_errno == ENOENT && code == Errc::Unsupported ? "no such scheduler"
      : sys_errno == ESRCH                             ? "no such virtual server"
                                                       : std::strerror(sys_errno));
  return {code, sys_errno, std::move(what)};
}

}  // namespace

void Commands::add(const Server& server) { encode(requests_, Verb::NewServer, server); }
void Commands::change(const Server& server) { encode(requests_, Verb::SetServer, server); }
void Commands::remove(const ServerKey& server) { encode(requests_, Verb::DeleteServer, server); }
void Commands::add(const ServerKey& server, const Destination& destination) {
  encode(requests_, Verb::NewDestination, server, destination);
}
void Commands::change(const ServerKey& server, const Destination& destination) {
  encode(requests_, Verb::SetDestination, server, destination);
}
void Commands::remove(const ServerKey& server, const net::SocketAddress& destination) {
  encode(requests_, Verb::DeleteDestination, server, destination);
}

Socket::Socket(std::unique_ptr<RequestSocket> socket) : socket_(std::move(socket)) {}
Socket::~Socket() = default;

Result<std::unique_ptr<Socket>> Socket::open() {
  auto socket = RequestSocket::open_generic("IPVS");
  if (!socket) {
    return fail("IPVS", socket.error());
  }
  return std::unique_ptr<Socket>(new Socket(std::move(*socket)));
}

Result<std::vector<Server>> Socket::servers(net::Family family) {
  Requests question;
  encode_list_servers(question);
  std::vector<Server> out;
  auto asked = ask_until_whole(
      *socket_,
      question,
      [&] { out.clear(); },
      [&](AttributeBytes payload) {
        auto server = decode_server(payload);
        if (server && server->key.address.ip.family == family) {
          out.push_back(std::move(*server));
        }
      });
  if (!asked) {
    return fail("virtual servers", asked.error());
  }
  return out;
}

Result<std::vector<Destination>> Socket::destinations(const ServerKey& server) {
  Requests question;
  encode_list_destinations(question, server);
  std::vector<Destination> out;
  const auto asked = ask_until_whole(
      *socket_,
      question,
      [&] { out.clear(); },
      [&](AttributeBytes payload) {
        if (const auto one = decode_destination(payload, server.address.ip.family)) {
          out.push_back(*one);
        }
      });
  if (!asked) {
    return tl::unexpected(error_of(question[0], asked.error().sys_errno));
  }
  if (out.empty()) {
    // Of a virtual server that is not there the kernel lists nothing and sees no mistake.
    question.clear();
    encode(question, Verb::GetServer, server);
    if (const auto found = socket_->ask(question, [](AttributeBytes) {}); !found) {
      return tl::unexpected(error_of(question[0], found.error().sys_errno));
    }
  }
  return out;
}

Result<> Socket::send(const Commands& commands, std::vector<Refused>& refused) {
  refused.clear();
  std::vector<RefusedRequest> raw;
  if (auto sent = socket_->send_each(commands.requests_, raw); !sent) {
    return fail("IPVS", sent.error());
  }
  for (const RefusedRequest& one : raw) {
    refused.push_back({one.index, error_of(commands.requests_[one.index], one.sys_errno)});
  }
  return {};
}

Result<> Socket::set_timeouts(const Timeouts& timeouts) {
  Requests command;
  encode(command, timeouts);
  if (auto set = socket_->ask(command, [](AttributeBytes) {}); !set) {
    return fail("IPVS timeouts", set.error());
  }
  return {};
}

Result<Timeouts> Socket::timeouts() {
  Requests question;
  encode_get_config(question);
  std::optional<Timeouts> out;
  auto asked = socket_->ask(question, [&](AttributeBytes payload) {
    if (const auto one = decode_timeouts(payload)) {
      out = one;
    }
  });
  if (!asked) {
    return fail("IPVS timeouts", asked.error());
  }
  if (!out) {
    return fail(Errc::Unsupported, "IPVS timeouts: this kernel does not tell them");
  }
  return *out;
}

}  // namespace shunt::netlink::ipvs
