package selection

// Pass returns the $readPreference to send with a read to a server of this type, and whether to send one at all
// (Server Selection, "Passing read preference to mongos and load balancers" and "Topology type: …"). Writes never
// have one. Since 4.2, only the first hello is sent as OP_QUERY, so the SecondaryOk flag needs no rule.
func Pass(topology TopologyType, server ServerType, p Preference) (Preference, bool) {
	switch {
	case topology == Unknown, topology == Single && server == Standalone:
		return Preference{}, false
	case p.Reads() != Primary:
		return p, true
	case topology == Single && server != Mongos:
		return Preference{Mode: PrimaryPreferred}, true // so that a secondary accepts the read
	}
	return Preference{}, false
}
