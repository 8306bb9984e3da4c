// The Kubernetes API: one request in, one response out. Knows nothing of sockets.
#pragma once

#include "test/apiserver/accept.h"
#include "test/apiserver/faults.h"
#include "test/apiserver/list_options.h"
#include "test/apiserver/options.h"
#include "test/apiserver/request.h"
#include "test/apiserver/response.h"
#include "test/apiserver/stats.h"
#include "test/apiserver/store.h"

namespace shunt::test_api {

// What every part of the API works on.
struct Context {
  const ServerOptions& options;
  Store& store;
  Faults& faults;
  Stats& stats;
};

void handle_api(Context context, const Request& request, Response& response);

// The parts, one file each.
Answer<> handle_list(
    Context context, const Target& target, const Request& request, Response& response);
Answer<> handle_watch(
    Context context, const Target& target, const Request& request, Response& response);
Answer<> handle_write(
    Context context, const Target& target, const Request& request, Response& response);

// In which encoding this client gets this resource. Only asked after handle_api has seen that there
// is one.
Encoding encoding_for(Context context, const Request& request, const Resource& resource);

// People with curl get indented JSON, as from the real server.
bool wants_pretty(const Request& request);
void send_json(const Request& request, Response& response, int code, std::string_view compact);
void send_object(
    Context context,
    const Request& request,
    Response& response,
    int code,
    const Resource& resource,
    const Object& object);
void send_status(Context context, const Request& request, Response& response, const Status& status);

// After a write through the admin port: X-Sent-Ns, the CLOCK_MONOTONIC time at which the object had
// been stored and its watches woken. Benchmarks measure from there.
void note_sent(const Request& request, Response& response);

// Waits until the fault is lifted. False: the client left first.
bool sit_out(Context context, Response& response, std::size_t table, const Fault& fault);

}  // namespace shunt::test_api
