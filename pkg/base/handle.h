// C handles as unique_ptr: `using MnlSocket = Handle<mnl_socket, mnl_socket_close>;`
#pragma once

#include <memory>

namespace shunt {

template <auto Free>
struct FreeWith {
  void operator()(auto* p) const noexcept { (void)Free(p); }  // a close has no caller left to tell
};

template <typename T, auto Free>
using Handle = std::unique_ptr<T, FreeWith<Free>>;

}  // namespace shunt
