"""Text files of any length in the formats that are read, each a function of its number of rows."""

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.span_lines import SpanHeader, pass_line, work_line
from fabrictune.foundation.spans import SpanKind
from tests.profile_events import ALL_REDUCE_OF_TWO, COLLECTIVE_OF_TWO

CABLE = "node{0},server,mlx5_{1},leaf{2},leaf,Ethernet{3},400G\n"


def remarks(count: int) -> str:
    """Lines of remarks, as YAML, Python and parameter files have them."""
    return _rows(count, lambda number: f"# remark {number}\n")


def _rows(count: int, row: Callable[[int], str], joint: str = "") -> str:
    return joint.join(row(number) for number in range(count))


def cabling_csv(count: int) -> str:
    head = "Side A Device,Side A Role,Side A Name,Side B Device,Side B Role,Side B Name,Speed\n"
    return head + _rows(count, lambda n: CABLE.format(n // 8, n % 8, n // 64, n % 64))


def loads(count: int) -> str:
    return "expert,load\n" + _rows(count, lambda n: f"{n},{1 + n % 7}\n")


def containerlab(count: int) -> str:
    nodes = _rows(count, lambda n: f"    node{n}: {{kind: linux}}\n")
    links = _rows(count, lambda n: f'    - endpoints: ["node{n}:eth1", "leaf1:e1-{n}"]\n')
    return f"name: big\ntopology:\n  nodes:\n    leaf1: {{kind: nokia_srlinux}}\n{nodes}  links:\n{links}"


def fabric_json(count: int) -> str:
    """A switch for every 64 hosts, each with one port."""
    num_leaves = -(-count // 64)
    hosts, ports = range(count), range(2 * count)
    columns = {
        "nodes": {
            "name": [*(f"host{n}" for n in hosts), *(f"leaf{n}" for n in range(num_leaves))],
            "kind": [0] * count + [1] * num_leaves,
            "tier": [0] * count + [1] * num_leaves,
            "group": [-1] * (count + num_leaves),
        },
        "ports": {
            "name": ["nic0" if port % 2 == 0 else f"down{port // 2 % 64}" for port in ports],
            "node": [port // 2 if port % 2 == 0 else count + port // 128 for port in ports],
            "peer": [port ^ 1 for port in ports],
            "rate_bps": [400_000_000_000] * (2 * count),
            "delay_ps": [50_000] * (2 * count),
            "nic": [port // 2 if port % 2 == 0 else -1 for port in ports],
        },
        "nics": {"host": list(hosts), "rail": [-1] * count, "ipv4": [(10 << 24) + n + 1 for n in hosts]},
    }
    return json.dumps({"format": "fabrictune fabric 1", "name": "big", **columns}, separators=(",", ":"))


def graphml(count: int) -> str:
    keys = '<key id="k" for="node" attr.name="kind" attr.type="string"/>'
    leaf = '<node id="leaf"><data key="k">switch</data></node>\n'
    nodes = _rows(count, lambda n: f'<node id="host{n}"><data key="k">host</data></node>\n')
    links = _rows(count, lambda n: f'<edge source="host{n}" target="leaf"/>\n')
    graph = f'<graph edgedefault="undirected">\n{leaf}{nodes}{links}</graph>'
    return f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}{graph}</graphml>\n'


def hpcc(count: int) -> str:
    links = _rows(count, lambda n: f"{n} {count} 100Gbps 0.001ms 0\n")
    return f"{count + 1} 1 {count}\n{count}\n{links}"


def htsim(count: int) -> str:
    head = "Nodes 8\nTiers 2\nPodsize 8\n\nTier 0\nDownlink_speed_Gbps 200\nRadix_Down 4\nRadix_Up 4\n"
    tail = "Downlink_Latency_ns 500\n\nTier 1\nDownlink_speed_Gbps 200\nRadix_Down 4\nBundle 2\n"
    return f"{head}{remarks(count)}{tail}Downlink_Latency_ns 1000\n"


def ibnetdiscover(count: int) -> str:
    def switch(n: int) -> str:
        name = f"S-{n + 2**40:016x}"
        head = f'switchguid=0x{n:x}({n:x})\nSwitch\t64 "{name}"\t\t# "leaf{n}" enhanced port 0 lid {n + 1} lmc 0\n'
        rows = (
            f'[{p}]\t"H-{32 * n + p:016x}"[1]({p}) \t\t# "node{32 * n + p} mlx5_0" lid 1 4xNDR\n' for p in range(32)
        )
        return f"{head}{''.join(rows)}\n"

    return _rows(count, switch)


def infragraph(count: int) -> str:
    device = "components: [{{name: port, count: {0}, choice: port}}]"
    ends = 'ep1: {{instance: "host[{0}]", component: port}}, ep2: {{instance: leaf, component: "port[{0}]"}}'
    edges = _rows(count, lambda n: f"  - {{{ends.format(n)}, scheme: one2one, link: access}}\n")
    return (
        f"name: big\ndevices:\n  - {{name: server, {device.format(1)}}}\n  - {{name: switch, {device.format(count)}}}\n"
        "links:\n  - name: access\n    physical:\n"
        "      bandwidth: {choice: gigabits_per_second, gigabits_per_second: 200}\n"
        f"instances:\n  - {{name: host, device: server, count: {count}}}\n"
        f"  - {{name: leaf, device: switch, count: 1}}\nedges:\n{edges}"
    )


def _neighbour(n: int) -> tuple[str, object]:
    chassis = {f"node{n}": {"id": {"type": "mac", "value": f"02:00:{n >> 24 & 255:02x}:{n >> 16 & 255:02x}:00:01"}}}
    port = {"id": {"type": "ifname", "value": "eth0"}}
    return f"Ethernet{n}", {"via": "LLDP", "chassis": chassis, "port": port}


def lldp_json(count: int) -> str:
    return json.dumps({"lldp": {"interface": [dict([_neighbour(n)]) for n in range(count)]}})


def lldp_text(count: int) -> str:
    row = "Interface:    {0}, via: LLDP\n  Chassis:\n    SysName:      {1}\n  Port:\n    PortID:       ifname eth0\n"
    line = "-" * 79 + "\n"
    return f"{line}LLDP neighbors:\n{line}" + _rows(count, lambda n: row.format(f"Ethernet{n}", f"node{n}") + line)


def lldp_capture(count: int) -> str:
    def record(n: int) -> str:
        table = {"lldp": {"interface": [dict([_neighbour(32 * n + port)]) for port in range(32)]}}
        return json.dumps([{"cmd": "lldpctl -f json", "hostname": f"leaf{n}", "data": json.dumps(table)}]) + "\n"

    return _rows(count, record)


def minigraph(count: int) -> str:
    link = (
        "<DeviceLinkBase><ElementType>DeviceInterfaceLink</ElementType><Bandwidth>400000</Bandwidth>"
        "<StartDevice>leaf1</StartDevice><StartPort>Ethernet{0}</StartPort>"
        "<EndDevice>node{0}</EndDevice><EndPort>eth0</EndPort></DeviceLinkBase>\n"
    )
    links = _rows(count, lambda n: link.format(n))
    return (
        '<DeviceMiniGraph xmlns:i="http://www.w3.org/2001/XMLSchema-instance" '
        f'xmlns="Microsoft.Search.Autopilot.Evolution"><PngDec><DeviceInterfaceLinks>\n{links}</DeviceInterfaceLinks>'
        "</PngDec><Hostname>leaf1</Hostname></DeviceMiniGraph>\n"
    )


def sonic(count: int) -> str:
    tables = {
        "DEVICE_METADATA": {"localhost": {"hostname": "tor1", "type": "ToRRouter"}},
        "PORT": {f"Ethernet{n}": {"speed": "400000", "admin_status": "up"} for n in range(count)},
        "DEVICE_NEIGHBOR": {f"Ethernet{n}": {"name": f"Server{n}", "port": "eth0"} for n in range(count)},
        "CABLE_LENGTH": {"AZURE": {f"Ethernet{n}": "3m" for n in range(count)}},
    }
    return json.dumps(tables)


def sonic_profiles(count: int) -> str:
    """A switch of few ports, whose queues name one of very many profiles."""
    curve = {"green_min_threshold": "1048576", "green_max_threshold": "2097152", "ecn": "ecn_all"}
    tables = {
        **json.loads(sonic(8)),
        "WRED_PROFILE": {f"PROFILE{n}": curve for n in range(count)},
        "QUEUE": {f"Ethernet{n}|0-7": {"wred_profile": f"PROFILE{n % count}"} for n in range(8)},
    }
    return json.dumps(tables)


def sonic_dump(count: int) -> str:
    keys = {f"PORT_TABLE:Ethernet{n}": _row({"speed": "400000", "alias": f"Eth1/{n}"}) for n in range(count)}
    heard = {"lldp_rem_port_id": "eth0", "lldp_rem_port_id_subtype": "5", "lldp_rem_sys_cap_enabled": "00 80"}
    keys |= {f"LLDP_ENTRY_TABLE:Ethernet{n}": _row({**heard, "lldp_rem_sys_name": f"Server{n}"}) for n in range(count)}
    return json.dumps({"LLDP_LOC_CHASSIS": _row({"lldp_loc_sys_name": "tor1"}), **keys})


def _row(value: dict[str, str]) -> dict[str, object]:
    return {"type": "hash", "ttl": -0.001, "value": value}


def aicb(count: int) -> str:
    head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4"
    row = "attention_column_{0:0200}\t-1\t1000\tALLGATHER\t8192\t1000\tREDUCESCATTER\t4096\t1000\tNONE\t0\t100\n"
    return f"{head}\n{count}\n" + _rows(count, lambda n: row.format(n))


def aicb_csv(count: int) -> str:
    head = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time\n"
    row = "CommType.all_reduce,CommGroup.tp_group,2,{0},forward.MegatronAttention,,,,None\n"
    return f"[rank0 ~ rank3]\n{head}" + _rows(count, lambda n: row.format(4096 + n))


def profile(count: int, one_in: int = 10) -> str:
    """What PyTorch writes for one rank: of ten events, or so many, one is a collective's kernel."""

    def event(n: int) -> str:
        common = {"ph": "X", "pid": 0, "tid": 7, "ts": 1000.5 + 10 * n, "dur": 5.25}
        if n % one_in:
            return json.dumps({**common, "cat": "cpu_op", "name": "aten::mul", "args": {"External id": n}})
        return json.dumps({**common, "cat": "kernel", "name": "ncclDevKernel_AllReduce", "args": ALL_REDUCE_OF_TWO})

    head = '{"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": ['
    return f"{head}\n{_rows(count, event, ',' + chr(10))}]}}\n"


def execution_trace(count: int) -> str:
    """What PyTorch's observer writes for one rank: of ten nodes one is a collective."""

    def node(n: int) -> str:
        name, described = ("aten::mul", {}) if n % 10 else ("record_param_comms", COLLECTIVE_OF_TWO)
        attributes = [{"name": key, "type": "string", "value": value} for key, value in described.items()]
        return json.dumps({"id": n, "name": name, "ctrl_deps": 1, "inputs": {"values": []}, "attrs": attributes})

    head = '{"schema": "1.1.1-chakra.0.0.4", "pid": 7, "time": "2026-11-23", "nodes": ['
    return f"{head}\n{_rows(count, node, ',' + chr(10))}]}}\n"


def recorded(count: int) -> dict[str, Any]:
    """What PyTorch's flight recorder knows of one rank: all-reduces of two ranks."""
    entries = [
        {
            "record_id": number,
            "process_group": ["0", "default_pg"],
            "collective_seq_id": number,
            "profiling_name": "nccl:all_reduce",
            "time_created_ns": 1_795_452_338_542_168_522 + 1000 * number,
            "input_sizes": [[1024]],
            "input_dtypes": ["Float"],
            "output_sizes": [[1024]],
            "state": "completed",
        }
        for number in range(count)
    ]
    return {"version": "2.10", "pg_config": {"0": {"ranks": "[0, 1]"}}, "entries": entries}


def flight_recorder(count: int) -> str:
    return json.dumps(recorded(count))


def goal(count: int) -> str:
    """A schedule of two ranks, of which one sends as many messages to the other."""
    sent = _rows(count, lambda n: f"l{n}: send 1000b to 1 tag {n % 7}\n")
    received = _rows(count, lambda n: f"l{n}: recv 1000b from 0 tag {n % 7}\n")
    return f"num_ranks 2\nrank 0 {{\n{sent}}}\nrank 1 {{\n{received}}}\n"


def nccl_tests_text(count: int) -> str:
    head = (
        "# nccl-tests version 2.13.6\n# Collective test starting: all_reduce_perf\n"
        "# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 1 iters: 20 validation: 1\n"
        "# Using devices\n#  Rank  0 Group  0 Pid   100 on      node0 device  0 [0x07] NVIDIA H100\n"
        "#  Rank  1 Group  0 Pid   101 on      node1 device  0 [0x07] NVIDIA H100\n"
        f"#       size         count      type   redop    root{2 * '     time   algbw   busbw #wrong'}\n"
        f"#        (B)    (elements)                          {2 * '     (us)  (GB/s)  (GB/s)       '}\n"
    )
    row = "{0:12}{1:14}     float     sum      -1  100.0  10.49   10.49      0  100.0  10.49   10.49      0\n"
    return head + _rows(count, lambda n: row.format(1048576, 262144))


def nccl_tests_json(count: int) -> str:
    timing = {"time": 100.0, "alg_bw": 10.49, "bus_bw": 10.49, "nwrong": 0}
    row = {"size": 1048576, "count": 262144, "type": "float", "redop": "sum", "root": -1}
    devices = [{"hostname": f"node{n}", "rank": n} for n in range(2)]
    tree = {
        "args": ["all_reduce_perf"],
        "config": {"nthreads": 1, "ngpus": 1, "devices": devices},
        "results": [{**row, "out_of_place": timing, "in_place": timing}] * count,
    }
    return json.dumps(tree)


def nccl_log(count: int) -> str:
    """Four hosts of one rank each, whose channels are set up again and again."""

    def says(rank: int, message: str) -> str:
        return f"host{rank}:574629:574651 [0] NCCL INFO {message}\n"

    def channel(n: int) -> str:
        rank, other = n % 4, (n + 1) % 4
        return says(rank, f"Channel {n // 4 % 64:02}/0 : {rank}[0] -> {other}[0] [send] via NET/IB/0/GDRDMA")

    device, about = (
        "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
        "nranks 4 cudaDev 0 nvmlDev 0 busId 80",
    )
    ranks = (f"comm 0x43dc rank {rank} {about} commId 0x1f - Init START" for rank in range(4))
    head = "".join(says(rank, device) + says(rank, starts) for rank, starts in enumerate(ranks))
    return says(0, "NCCL version 2.26.2+cuda12.4") + head + _rows(count, channel)


def nccl_topology(count: int) -> str:
    """A host with many GPUs, each beside a NIC."""
    gpu = '<pci busid="g{0}" class="0x030200"><gpu dev="{0}" sm="90" rank="{0}" gdr="1"/></pci>\n'
    net = '<pci busid="n{0}" class="0x020000"><nic><net name="mlx5_{0}" dev="{0}" speed="400000"/></nic></pci>\n'
    switch = '<pci busid="s{0}" class="0x060400">\n' + gpu + net + "</pci>\n"
    return f'<system version="1"><cpu numaid="0">\n{_rows(count, switch.format)}</cpu></system>\n'


def inspector(count: int) -> str:
    """All-reduces of eight ranks, one line each."""
    head = '{{"header":{{"id":"0x7f8c496ae9f661","comm_name":"unknown","rank":{0},"n_ranks":8,"nnodes":2}},'
    metadata = '"metadata":{{"inspector_output_format_version":"v4.0","git_rev":"","hostname":"node{0}","pid":7}},'
    measured = (
        '"coll_perf":{{"coll":"AllReduce","coll_sn":{1},"coll_msg_size_bytes":1048576,"coll_exec_time_us":{2}}}}}\n'
    )
    row = head + metadata + measured
    return _rows(count, lambda n: row.format(n % 8, n // 8, 100 + n % 50))


def ras(count: int) -> str:
    """Communicators of eight ranks."""
    status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
    counts = {"Broadcast": 0, "Reduce": 0, "AllGather": 5, "ReduceScatter": 5, "AllReduce": 5}

    def communicator(n: int) -> str:
        ranks = [
            {"rank": r, "host": f"node{n}", "pid": r, "cuda_dev": r, "nvml_dev": r, "status": status,
             "collective_counts": counts} for r in range(8)
        ]  # fmt: skip
        return json.dumps({"hash": hex(n), "size": 8, "ranks": ranks, "missing_ranks": []}, indent=2)

    return f'{{"nccl_version": "2.29.7", "communicators": [\n{_rows(count, communicator, "," + chr(10))}]}}\n'


def watchdog(count: int) -> str:
    """Timeouts of eight ranks, again and again."""
    head = "[rank{0}]:[E321 02:07:08.40 ProcessGroupNCCL.cpp:607] "
    timeout = "[Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, "
    sizes = "NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.\n"
    status = "[PG 0 Rank {0}] Exception detected by watchdog at work: {1}, last enqueued NCCL work: {1}, "
    row = head + timeout + sizes + head + status + "last completed NCCL work: 1.\n"
    return _rows(count, lambda n: row.format(n % 8, 2 + n // 8))


def stacks(count: int) -> str:
    """Stacks of many threads of one process."""
    frames = "    all_reduce (torch/distributed/distributed_c10d.py:2219)\n    train (train.py:120)\n\n"
    row = 'Thread {0} (idle): "MainThread"\n' + frames
    return "Process 7: python train.py\n\n" + _rows(count, row.format)


def simccl(count: int) -> str:
    """Messages of 64 ranks round a ring on 32 channels."""
    head = "collective,op,data_size,algorithm,protocol,channel_id,flow_id,src,dest,flow_size,chunk_id,chunk_count,"
    row = "AllReduce_0,0,1048576,1,2,{0},{1},{2},{3},131072,0,6,RING,,{1}\n"
    body = _rows(count, lambda n: row.format(n // 64 % 32, n, n % 64, (n + 1) % 64))
    return f"{head}conn_type,parent_flow_ids,prev_flow_ids\n{body}"


def nccl_graph(count: int) -> str:
    channel = '<channel><net dev="0"/><gpu dev="0"/><gpu dev="1"/><net dev="1"/></channel>\n'
    attributes = f'pattern="4" crossnic="0" nchannels="{count}" speedintra="12" speedinter="12"'
    return f'<graphs version="1">\n<graph id="0" {attributes}>\n{channel * count}</graph></graphs>\n'


def listing(numbers: range, other: int) -> str:
    """Queue pairs, each connected to the number that is `other` more."""
    row = {"ifname": "mlx5_0", "port": 1, "type": "RC", "state": "RTS", "pid": 1, "comm": "python"}
    return json.dumps([{**row, "lqpn": n % 2**24, "rqpn": (n + other) % 2**24} for n in numbers])


def hosts(count: int) -> str:
    return _rows(count, lambda n: f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255} spine{n // 64}:down{n % 64}\n")


def host_file(count: int) -> str:
    """Return a host file of four slots, behind hosts without any."""
    return _rows(count, lambda n: f"host{n} slots=0\n") + "host[0-3] slots=1\n"


def placement_csv(count: int) -> str:
    """Return a planner's placement of another job, and behind it that of this one."""
    others = _rows(count, lambda n: f"other,{n},host{n % 4},0\n")
    return f"job,rank,host,gpu\n{others}" + _rows(4, lambda n: f",{n},host{n},0\n")


def source_ports(count: int) -> str:
    """Return the source port of a queue pair, and behind it lines without a row."""
    head = "source,destination,source_qpn,destination_qpn,source_port\n"
    return f"{head}host0:nic0,host1:nic0,256,256,50000\n" + "\r\n" * count


def scenario(count: int) -> str:
    fabric = "{builder: clos, num_hosts: 4, hosts_per_tor_set: 2, nics_per_host: 2, tiers: 2}"
    traffic = "{workload: permutation, message: 1 KB}"
    return f"{remarks(count)}name: big\nfabric: {fabric}\ntraffic: {traffic}\n"


def sweep(count: int, original: Path) -> str:
    """The sweep of a file, and remarks."""
    scenario = f"scenario: {original.parent}/"
    return remarks(count) + original.read_text().replace("scenario: ", scenario)


def rules(count: int) -> str:
    return f"{remarks(count)}rules:\n  fabric.unequal-rate: {{severity: info}}\n"


def nic_parameters(count: int) -> str:
    return f"{remarks(count)}rpg_time_reset:300\nrpg_ai_rate:5\n"


def nic_counters(count: int) -> str:
    names = ("rx_prio{0}_pause", "tx_bytes_phy", "counter_of_a_driver_{0}", "rx{0}_packets")
    rows = (f"     {names[n % 4].format(n // 4 % 8)}: {n}\n" for n in range(count))
    return "# ethtool -S eth2\nNIC statistics:\n" + "".join(rows)


def ib_ports(count: int) -> str:
    line = "CA {0:5} 1 0x{1:016x} 4x HDR - SW 1 {2} 0x{3:016x} ( 'node{0} mlx5_0' - 'leaf{3}' )\n"
    return "".join(line.format(n, 2**40 + n, n % 200 + 1, n // 200 + 1) for n in range(count))


def ib_link_info(count: int) -> str:
    state = "==( 4X 53.125 Gbps Active/  LinkUp)==>"
    line = '0x{1:016x} "node{0} mlx5_0" {0} 1[  ] {4} 0x{3:016x} 1 {2}[  ] "leaf{3}" ( )\n'
    return "".join(line.format(n, 2**40 + n, n % 200 + 1, n // 200 + 1, state) for n in range(count))


def ibsim(count: int) -> str:
    ports = "".join(f'[{n % 200 + 1}] "node{n}"[1]\n' if n % 200 else f'Switch 256 "leaf{n}"\n' for n in range(count))
    return ports + "".join(f'Hca 1 "node{n}"\n' for n in range(count))


def lldp_switch_table(count: int) -> str:
    head = "Port          Neighbor Device ID       Neighbor Port ID    TTL\n"
    return head + "".join(f"Et{n:<12}server{n:<19}eth0                120\n" for n in range(count))


def lldp_keyvalue(count: int) -> str:
    keys = "lldp.swp{0}.via=LLDP\nlldp.swp{0}.chassis.name=server{0}\nlldp.swp{0}.port.ifname=eth0\n"
    return "".join(keys.format(n) for n in range(count))


def connection_matrix(count: int) -> str:
    flows = "".join(f"{n % 2}->{1 - n % 2} id {n + 1} start {n} size 2000000\n" for n in range(count))
    return f"Nodes 2\nConnections {count}\n{flows}"


def ns3_flows(count: int) -> str:
    return f"{count}\n" + "".join(f"{n % 2} {1 - n % 2} 3 100 200000000 2.{n:09}\n" for n in range(count))


def perftest(count: int) -> str:
    """Return rows of messages that take 2 us, and 1 us for each 12 kB."""
    head = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
    sizes = [n % 2**23 + 1 for n in range(count)]
    times_us = [2 + size / 12000 for size in sizes]
    return head + "".join(
        f" {size}      5000     {size / time_us:.6f}      {size / time_us:.6f}     {1 / time_us:.6f}\n"
        for size, time_us in zip(sizes, times_us, strict=True)
    )


def path_counts(count: int) -> str:
    """Return packets by path: flows of 64 paths each, over links of 8 ToRs to 64 spines."""
    rows = (
        f"flow{row // 64},tor{row // 64 % 8}:up{row % 64};spine{row % 64}:down{row // 512 % 8},{900 + row % 7}"
        for row in range(count)
    )
    return "\n".join(["flow,links,received", *rows, ""])


def spans(count: int) -> str:
    """Return the spans of one rank: steps of 1 ms with two passes and an update."""
    header = SpanHeader(rank=0, layout=ParallelLayout(), host="node0", pid=1, clock_offset_ns=0, clock_error_ns=0)
    lines = [header.line().decode()]
    for step in range(-(-count // 4)):
        begin = 1_000_000 * step
        lines += [
            work_line(SpanKind.STEP, step, begin, begin + 1_000_000),
            pass_line(SpanKind.FORWARD, step, begin, begin + 300_000, 0, 0),
            pass_line(SpanKind.BACKWARD, step, begin + 300_000, begin + 900_000, 0, 0),
            work_line(SpanKind.OPTIMIZER, step, begin + 900_000, begin + 1_000_000),
        ]
    return "".join(lines)


def recipe(count: int) -> str:
    return f"{remarks(count)}{(resources.files('fabrictune.trainer_probe') / 'recipes' / 'tiny.yaml').read_text()}"


def failures_csv(count: int) -> str:
    rows = (f"cause {row},{row},1000,,node" for row in range(count))
    return "\n".join(["cause,count,node_days,job_days,loses", *rows, ""])


def failures_yaml(count: int) -> str:
    rows = (f"  - {{cause: c{row}, count: {row}}}" for row in range(count))
    return "\n".join(["node_days: 1000", "causes:", *rows, ""])


def hardware_profile(count: int) -> str:
    return f"{remarks(count)}{(resources.files('fabrictune.hardware') / 'profiles' / 'a100.yaml').read_text()}"


def timer_profile(count: int) -> str:
    timers = "timers: {floor_exponent: 16}\n"
    return f"{remarks(count)}name: big\nsource: a test\nconfidence: documented\n{timers}"


def law(count: int) -> str:
    return f"{remarks(count)}{(resources.files('fabrictune.cc') / 'none.py').read_text()}"
