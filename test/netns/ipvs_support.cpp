#include "netns/ipvs_support.h"

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>

#include "base/unique_fd.h"
#include "netns/process.h"

namespace shunt::lab {
namespace {

constexpr char kFamily[] = "IPVS";

// "Which number has the family?" Asking loads the module.
struct Request {
  nlmsghdr header{};
  genlmsghdr command{};
  nlattr attribute{};
  std::array<char, NLMSG_ALIGN(sizeof kFamily)> name{};
};

Request request() {
  Request out;
  out.header.nlmsg_len = sizeof out;
  out.header.nlmsg_type = GENL_ID_CTRL;
  out.header.nlmsg_flags = NLM_F_REQUEST;
  out.command.cmd = CTRL_CMD_GETFAMILY;
  out.command.version = 1;
  out.attribute.nla_len = sizeof out.attribute + sizeof kFamily;
  out.attribute.nla_type = CTRL_ATTR_FAMILY_NAME;
  std::memcpy(out.name.data(), kFamily, sizeof kFamily);
  return out;
}

bool knows_family() {
  const UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC));
  const Request question = request();
  if (!fd || ::send(fd.get(), &question, sizeof question, 0) != sizeof question) {
    return false;
  }
  alignas(nlmsghdr) std::array<char, 4096> buffer{};
  const ssize_t got = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
  const auto* const answer = reinterpret_cast<const nlmsghdr*>(buffer.data());
  return got >= static_cast<ssize_t>(sizeof(nlmsghdr)) && answer->nlmsg_type == GENL_ID_CTRL;
}

std::optional<std::string> look() {
  if (::unshare(CLONE_NEWNET) != 0) {
    return std::string("no network namespace can be made: ") + std::strerror(errno);
  }
  if (!knows_family()) {
    return "the kernel has no IPVS";
  }
  try {
    run_program({"ip", "link", "add", "probe", "type", "dummy"});
  } catch (const std::exception&) {
    return "the kernel has no dummy devices";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_no_ipvs() {
  if (::geteuid() != 0) {
    return "needs root";
  }
  std::optional<std::string> answer;
  std::thread([&] { answer = look(); }).join();
  return answer;
}

}  // namespace shunt::lab
