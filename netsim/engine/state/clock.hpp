// Time on a wire: whole picoseconds, and how long a frame occupies a transmitter.
#pragma once

#include <cstdint>
#include <limits>

namespace netsim {

using Picoseconds = std::int64_t;

inline constexpr Picoseconds NEVER = std::numeric_limits<Picoseconds>::max();
inline constexpr Picoseconds LAST_INSTANT = NEVER / 2;  // 53 days: the sum of two times before it is one
inline constexpr Picoseconds LONG_AGO = -NEVER / 2;
inline constexpr double MAX_GAP_PS = 1e17;                          // 28 hours: no law waits longer between two packets
inline constexpr std::int64_t BIT_PS_PER_BYTE = 8'000'000'000'000;  // a byte takes this over the rate in bits a second

// Picoseconds a byte takes; 0 if they are not a whole number of 16 bits.
constexpr std::uint16_t whole_ps_per_byte(std::int64_t rate_bps) {
    const std::int64_t ps_per_byte = BIT_PS_PER_BYTE / rate_bps;
    const bool is_whole = BIT_PS_PER_BYTE % rate_bps == 0 && ps_per_byte <= UINT16_MAX;
    return is_whole ? static_cast<std::uint16_t>(ps_per_byte) : 0;
}

// Rounded up, so that no link is ever faster than its rate. Exact below 1 MB a frame.
constexpr Picoseconds serialization_ps(std::int64_t bytes, std::int64_t rate_bps) {
    return (bytes * BIT_PS_PER_BYTE + rate_bps - 1) / rate_bps;
}

// The same for a whole transfer, of any size.
constexpr Picoseconds transfer_ps(std::int64_t bytes, std::int64_t rate_bps) {
    __extension__ using Wide = __int128;
    return static_cast<Picoseconds>((Wide{bytes} * BIT_PS_PER_BYTE + rate_bps - 1) / rate_bps);
}

}  // namespace netsim
