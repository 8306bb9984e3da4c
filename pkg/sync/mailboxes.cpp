#include "sync/mailboxes.h"

#include <string>
#include <utility>

namespace shunt::sync {
namespace {

// Takes a mailbox's content into the store. How much came; the end of a list counts as one.
template <typename T, typename Remove, typename Listed>
std::size_t take(
    Mailbox<std::shared_ptr<const T>>& box,
    store::ObjectStore& store,
    const Remove& remove,
    const Listed& listed) {
  auto mail = box.drain();
  const std::size_t count = mail.changes.size();
  for (auto& [key, slot] : mail.changes) {
    if (slot.value) {
      store.upsert(std::move(*slot.value), slot.list);
    } else {
      remove(key);
    }
  }
  if (mail.listed) {
    listed(*mail.listed);
  }
  return count + (mail.listed ? 1 : 0);
}

kube::ObjectKey key_of(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) {
    return {"", text};
  }
  return {text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace

Drained drain(Mailboxes& mailboxes, store::ObjectStore& store) {
  using List = store::ListNumber;
  Drained out;
  out.services = take(
      mailboxes.services,
      store,
      [&](const std::string& key) { store.remove_service(key_of(key)); },
      [&](List list) { store.services_listed(list); });
  out.slices = take(
      mailboxes.slices,
      store,
      [&](const std::string& key) { store.remove_slice(key_of(key)); },
      [&](List list) { store.slices_listed(list); });
  const std::size_t of_node = take(
      mailboxes.nodes,
      store,
      [&](const std::string&) { store.remove_node(); },
      [&](List) { store.nodes_listed(); });
  (void)take(  // nobody counts them
      mailboxes.service_cidrs,
      store,
      [&](const std::string& key) { store.remove_service_cidr(key_of(key)); },
      [&](List list) { store.service_cidrs_listed(list); });
  out.node = of_node != 0;
  return out;
}

}  // namespace shunt::sync
