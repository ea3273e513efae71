package selection

// Pass gives the read preference to send as $readPreference with a read that
// goes to a server of this type, and whether to send one at all (Server
// Selection, "Passing read preference to mongos and load balancers" and "Topology
// type: …"). Writes send none. Servers since 4.2 are never sent OP_QUERY but for
// the first hello, so that the SecondaryOk flag needs no rule.
func Pass(topology TopologyType, server ServerType, p Preference) (Preference, bool) {
	switch {
	case topology == Unknown, topology == Single && server == Standalone:
		return Preference{}, false
	case p.Reads() != Primary:
		return p, true
	case topology == Single && server != Mongos:
		return Preference{Mode: PrimaryPreferred}, true // so that a secondary answers as well
	}
	return Preference{}, false
}
