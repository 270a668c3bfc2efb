// The results of a run, from the engine's rows to columns of numbers for Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../state/simulation.hpp"

namespace netsim {

using Column = nanobind::ndarray<nanobind::numpy, std::int64_t, nanobind::ndim<1>>;
using Columns = std::map<std::string, Column>;

std::vector<std::string> transfer_column_names(const Simulation& simulation);
// A column of transfers `begin` to `end` - 1.
Column transfer_column(const Simulation& simulation, const std::string& name, std::size_t begin, std::size_t end);
Columns transfer_columns(const Simulation& simulation);
Columns port_columns(const Simulation& simulation);
Columns port_sample_columns(const Simulation& simulation);
Columns flow_sample_columns(const Simulation& simulation);
Columns capture_columns(const Simulation& simulation);
// Where the packets of each transfer stand in the sequence of its queue pair; both 0 before it is ready.
Columns message_columns(const Simulation& simulation);
// A row a port and priority; empty where ports have none.
Columns queue_columns(const Simulation& simulation);
// Bytes that came in by one port and wait for another, a row a pair with any. Where ports have priorities, the numbers
// here and below are those of ports times the number of priorities, plus the priority.
Columns waiting_columns(Simulation& simulation);
// The ports held by a pause, and where the switch behind them would let go.
Columns hold_columns(const Simulation& simulation);
// What came through each port with each priority and is still behind it; empty without priorities.
Columns input_columns(const Simulation& simulation);
// Packets that faults have cost behind each port, by cause; no rows where nothing could go wrong.
Columns fault_drop_columns(const Simulation& simulation);
// How many bytes were acknowledged when a fault began or ended.
Columns milestone_columns(const Simulation& simulation);
// Queue pairs that ran out of retries, and when.
Columns failure_columns(const Simulation& simulation);
std::map<std::string, std::uint64_t> packet_counts(const Simulation& simulation);
// What was taken at mean rates, and how audits of that went.
std::map<std::string, std::uint64_t> skip_counts(const Simulation& simulation);
// The laws' records of all queue pairs, one behind the other.
nanobind::bytes flow_records(const Simulation& simulation);

}  // namespace netsim
