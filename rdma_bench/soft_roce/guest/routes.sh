# The ways between the two ends of the wire. A link that goes down takes them along, so they are set again when it is up.
set -e
ip route replace 10.77.0.2 dev wire_a src 10.77.0.1 table 101
ip route replace 10.77.0.1 dev wire_b src 10.77.0.2 table 102
ip neigh replace 10.77.0.2 lladdr 02:00:00:00:00:0b dev wire_a nud permanent
ip neigh replace 10.77.0.1 lladdr 02:00:00:00:00:0a dev wire_b nud permanent
