// The arrays of some transfers, ARRAY(type, name), rows one after another: TransferRows has these fields, and the
// bindings take exactly these names from netsim/engine_inputs/transfers.py.
//
// Shapes: T transfers, D dependencies.

ARRAY(std::int64_t, transfer_medium);     // T
ARRAY(std::int64_t, transfer_qp);         // T
ARRAY(std::int64_t, transfer_bytes);      // T
ARRAY(std::int64_t, transfer_start);      // T: picoseconds
ARRAY(std::int64_t, transfer_delay);      // T: picoseconds
ARRAY(std::int64_t, num_dependencies);    // T
ARRAY(std::int64_t, dependency_row);      // D: the transfers that each transfer waits for, of the whole run
ARRAY(std::int64_t, nvlink_source);       // T: GPU, -1 for transfers that take none; empty if all are
ARRAY(std::int64_t, nvlink_destination);  // T
