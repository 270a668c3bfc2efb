"""Captures of RoCEv2 traffic: from a pcap or pcapng file to a table of its flows, in bulk and in bounded memory."""
