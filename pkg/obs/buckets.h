// The bounds of kube-proxy's histograms, in seconds.
#pragma once

#include <vector>

namespace shunt::obs {

std::vector<double> sync_buckets();         // 1 ms, doubling, to 16 s
std::vector<double> programming_buckets();  // a quarter of a second to five minutes
std::vector<double> request_buckets();      // client-go's
std::vector<double> transaction_buckets();  // 50 us, doubling, to 13 s: ours

}  // namespace shunt::obs
