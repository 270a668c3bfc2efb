# Two soft-RoCE devices, rxe_a and rxe_b, at the two ends of one wire (a veth pair), and a third, rxe_down, whose port is
# down. All share one network namespace, since the driver's socket exists in the first alone; rules send what goes from one
# address to the other over the wire, not over the loopback.
set -e
modprobe -a crc32_generic rdma_rxe ib_uverbs rdma_ucm veth dummy af_packet sch_ingress cls_matchall act_gact
setting() { echo "$2" >"/proc/sys/net/$1"; }

ip link set lo up
ip link add wire_a address 02:00:00:00:00:0a type veth peer name wire_b address 02:00:00:00:00:0b
for wire in wire_a wire_b; do
    setting ipv6/conf/$wire/disable_ipv6 1
    setting ipv4/conf/$wire/accept_local 1
    setting ipv4/conf/$wire/rp_filter 0
    setting ipv4/conf/$wire/arp_ignore 1
done
setting ipv4/conf/all/rp_filter 0
ip address add 10.77.0.1/32 dev wire_a
ip address add 10.77.0.2/32 dev wire_b
ip link set wire_a up
ip link set wire_b up
ip rule add pref 10 iif wire_a lookup local
ip rule add pref 11 iif wire_b lookup local
ip rule add pref 20 to 10.77.0.2 lookup 101
ip rule add pref 21 to 10.77.0.1 lookup 102
ip rule add pref 30 lookup local
ip rule del pref 0
sh "$(dirname "$0")/routes.sh"
tc qdisc add dev wire_b clsact

ip link add idle type dummy
ip address add 10.78.0.1/24 dev idle

rdma link add rxe_a type rxe netdev wire_a
rdma link add rxe_b type rxe netdev wire_b
rdma link add rxe_down type rxe netdev idle
ip address add 10.0.2.15/24 dev eth0
ip link set eth0 up
