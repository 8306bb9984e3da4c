#include "sync/mailboxes.h"

#include <string>
#include <utility>

namespace shunt::sync {
namespace {

// Takes a mailbox's content into the store.
template <typename T, typename Remove, typename Listed>
void take(
    Mailbox<std::shared_ptr<const T>>& box,
    store::ObjectStore& store,
    const Remove& remove,
    const Listed& listed) {
  auto mail = box.drain();
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
}

kube::ObjectKey key_of(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) {
    return {"", text};
  }
  return {text.substr(0, slash), text.substr(slash + 1)};
}

}  // namespace

void drain(Mailboxes& mailboxes, store::ObjectStore& store) {
  using List = store::ListNumber;
  take(
      mailboxes.services,
      store,
      [&](const std::string& key) { store.remove_service(key_of(key)); },
      [&](List list) { store.services_listed(list); });
  take(
      mailboxes.slices,
      store,
      [&](const std::string& key) { store.remove_slice(key_of(key)); },
      [&](List list) { store.slices_listed(list); });
  take(
      mailboxes.nodes,
      store,
      [&](const std::string&) { store.remove_node(); },
      [&](List) { store.nodes_listed(); });
  take(
      mailboxes.service_cidrs,
      store,
      [&](const std::string& key) { store.remove_service_cidr(key_of(key)); },
      [&](List list) { store.service_cidrs_listed(list); });
}

}  // namespace shunt::sync
