// The structs of kube in a snapshot: all of their fields, so that what comes back is equal.
#pragma once

#include "kube/endpoint_slice.h"
#include "kube/node.h"
#include "kube/service.h"
#include "snapshot/archive.h"

namespace shunt::snapshot {

void put(Encoder& out, const kube::Service& object);
void put(Encoder& out, const kube::EndpointSlice& object);
void put(Encoder& out, const kube::Node& object);
void put(Encoder& out, const kube::ServiceCidr& object);

// `object` is a new one. Whether it is good, the decoder says.
void take(Decoder& in, kube::Service& object);
void take(Decoder& in, kube::EndpointSlice& object);
void take(Decoder& in, kube::Node& object);
void take(Decoder& in, kube::ServiceCidr& object);

}  // namespace shunt::snapshot
