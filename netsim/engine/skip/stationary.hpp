// Batch means: whether a series of windows is stationary, and how far its mean over a span to come may be off.
//
// Source: A. M. Law, "Simulation Modeling and Analysis", 5th edition, sections 9.5.3 (batch means) and 9.5.1 (initial
// data deleted); quantiles of Student's t to five digits. netsim/reference/mean_rates.py is the same to the last bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace netsim {

inline constexpr std::size_t FEWEST_WINDOWS = 4, MOST_WINDOWS = 16;

// Of Student's t, 97.5 %, by degrees of freedom from 1.
inline constexpr double T_QUANTILES[MOST_WINDOWS] = {12.706, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060,
                                                     2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199};

struct MeanRate {
    double mean = 0;       // packets acknowledged a picosecond
    double deviation = 0;  // of a window's rate
    double decline = 0;    // of what is in flight, packets a window; 0 if it grows
    double window_ps = 0;  // mean length
    std::uint32_t num_windows = 0;
    bool is_stationary = false;
};

inline double mean_of(const double* values, std::size_t num) {
    double sum = 0;
    for (std::size_t i = 0; i < num; i++) sum += values[i];
    return sum / static_cast<double>(num);
}

inline double squares_about(const double* values, std::size_t num, double mean) {
    double sum = 0;
    for (std::size_t i = 0; i < num; i++) sum += (values[i] - mean) * (values[i] - mean);
    return sum;
}

// A straight line through a series, by least squares.
struct Trend {
    double slope;  // a window
    double error;  // its standard error
};

inline Trend trend_of(const double* values, std::size_t num, double mean) {
    double product = 0, squares = 0;
    for (std::size_t i = 0; i < num; i++) {
        const double from_middle = static_cast<double>(i) - static_cast<double>(num - 1) / 2;
        product += from_middle * (values[i] - mean);
        squares += from_middle * from_middle;
    }
    const double slope = product / squares;
    const double left = std::max(squares_about(values, num, mean) - slope * product, 0.0);
    return {slope, std::sqrt(left / static_cast<double>(num - 2) / squares)};
}

// What `num` windows since a change tell, in order, of which the last are given; initial data are left out.
inline MeanRate estimate_mean_rate(const double* rates, const double* in_flight, const double* lengths_ps,
                                   std::size_t num_given, std::size_t num) {
    static constexpr double ROUNDING = 1e-9;  // what rounding makes of a constant is no trend
    const std::size_t num_used = std::min(std::max((num + 1) / 2, FEWEST_WINDOWS), MOST_WINDOWS);
    if (num_used > num_given) return {};
    const std::size_t first = num_given - num_used;
    const double mean = mean_of(rates + first, num_used);
    const Trend trend = trend_of(rates + first, num_used, mean);
    const double squares = squares_about(rates + first, num_used, mean);
    const double decline = (in_flight[first] - in_flight[num_given - 1]) / static_cast<double>(num_used - 1);
    return {
        .mean = mean,
        .deviation = std::sqrt(squares / static_cast<double>(num_used - 1)),
        .decline = std::max(decline, 0.0),
        .window_ps = mean_of(lengths_ps + first, num_used),
        .num_windows = static_cast<std::uint32_t>(num_used),
        .is_stationary = mean > 0 && std::abs(trend.slope) <= T_QUANTILES[num_used - 3] * trend.error + ROUNDING * mean,
    };
}

// How many packets more or fewer than the mean a pair may send in the next `span_ps`, at 95 %: what the windows' spread
// tells, and what arrives faster than it leaves.
inline double half_width_packets(const MeanRate& rate, double span_ps) {
    static constexpr double ENDS = 2;  // packets: the span begins and ends between two
    const auto num = static_cast<double>(rate.num_windows);
    const double ahead = span_ps / rate.window_ps;
    const double spread = T_QUANTILES[rate.num_windows - 2] * rate.deviation * std::sqrt(ahead + ahead * ahead / num);
    return spread * rate.window_ps + rate.decline * ahead + ENDS;
}

}  // namespace netsim
