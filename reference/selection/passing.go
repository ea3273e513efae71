package selection

// Passing is what happens to the read preference of a command that is sent.
type Passing uint8

// The ways of passing a read preference with OP_MSG.
const (
	// Withhold: $readPreference must not be there.
	Withhold Passing = iota
	// UnlessPrimary: the preference as it is, and nothing for mode primary.
	UnlessPrimary
	// PreferPrimary: the preference as it is, and primaryPreferred in the
	// place of mode primary, so that a secondary answers as well.
	PreferPrimary
)

// passingRule is a row of the passing rules; empty fields match anything.
type passingRule struct {
	topology TopologyType
	server   ServerType
	passing  Passing
	section  string
}

// passingRules is Server Selection on $readPreference with OP_MSG, the first
// row that matches counts. (Servers since 4.2 are never sent OP_QUERY but for
// the first hello, so that the SecondaryOk flag needs no rule.)
var passingRules = [...]passingRule{
	{Single, Standalone, Withhold, "Topology type: Single"},
	{Single, Mongos, UnlessPrimary, "Topology type: Single"},
	{Single, "", PreferPrimary, "Topology type: Single"},
	{Sharded, "", UnlessPrimary, "Passing read preference to mongos and load balancers"},
	{LoadBalanced, "", UnlessPrimary, "Topology type: LoadBalanced"},
	{ReplicaSetWithPrimary, "", UnlessPrimary, "Topology types: ReplicaSetWithPrimary or ReplicaSetNoPrimary"},
	{ReplicaSetNoPrimary, "", UnlessPrimary, "Topology types: ReplicaSetWithPrimary or ReplicaSetNoPrimary"},
}

// Pass gives the read preference to send as $readPreference with a read that
// goes to a server of this type, and whether to send one at all. Writes send
// none.
func Pass(topology TopologyType, server ServerType, p Preference) (Preference, bool) {
	for _, r := range passingRules {
		if r.topology != topology || (r.server != "" && r.server != server) {
			continue
		}
		switch {
		case r.passing == Withhold:
			return Preference{}, false
		case p.mode() != Primary:
			return p, true
		case r.passing == PreferPrimary:
			return Preference{Mode: PrimaryPreferred}, true
		default:
			return Preference{}, false
		}
	}
	return Preference{}, false
}
