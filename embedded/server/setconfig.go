package server

import (
	"net"
	"slices"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Member is what the configuration of a replica set says of one member. Names
// and meaning are those of the documents that replSetInitiate takes.
type Member struct {
	ID           int32
	Host         string // host:port, which clients are told
	ArbiterOnly  bool
	Hidden       bool
	BuildIndexes bool
	Priority     float64
	Votes        int32
	Tags         bson.Raw // nil for none
	Delay        int64    // secondaryDelaySecs
}

// electable says whether the member may become primary.
func (m Member) electable() bool { return m.Priority > 0 && !m.ArbiterOnly }

// SetConfig is the configuration of a replica set.
type SetConfig struct {
	Name         string
	Version      int32 // 0 if the document has none
	ConfigServer bool
	Members      []Member
	// Settings replace the defaults of the same names.
	Settings bson.D
}

// The limits of a configuration.
const (
	maxVoters   = 7
	maxMemberID = 255
	maxPriority = 1000
)

// DefaultPort is where mongod and mongos listen.
const DefaultPort = 27017

// invalidConfig refuses a configuration as the server does.
func invalidConfig(format string, args ...any) error {
	return refuse(codeInvalidReplicaSetConfig, format, args...)
}

// ParseSetConfig reads and checks a document as replSetInitiate and
// replSetReconfig take it. Its errors are the server's.
func ParseSetConfig(doc bson.Raw, profile Profile) (SetConfig, error) {
	c := SetConfig{}
	if err := onlyFields(doc, setFields, profile, "ReplSetConfig"); err != nil {
		return c, err
	}
	var ok bool
	if c.Name, ok = doc.Lookup("_id").StringValueOK(); !ok || c.Name == "" {
		return c, invalidConfig("Missing required string field \"_id\" of the replica set configuration")
	}
	version, ok := doc.Lookup("version").AsInt64OK()
	if ok && (version < 1 || version > 1<<31-1) {
		return c, invalidConfig("replica set configuration version field value of %d is out of range", version)
	}
	c.Version = int32(version)
	c.ConfigServer, _ = doc.Lookup("configsvr").BooleanOK()
	if settings, ok := doc.Lookup("settings").DocumentOK(); ok {
		if err := bson.Unmarshal(settings, &c.Settings); err != nil {
			return c, err
		}
	}
	list, ok := doc.Lookup("members").ArrayOK()
	if !ok {
		return c, invalidConfig("Missing required array field \"members\" of the replica set configuration")
	}
	values, err := list.Values()
	if err != nil {
		return c, err
	}
	for _, v := range values {
		member, ok := v.DocumentOK()
		if !ok {
			return c, refuse(codeTypeMismatch, "Expected each element of the \"members\" array to be an object")
		}
		m, err := parseMember(member, profile)
		if err != nil {
			return c, err
		}
		c.Members = append(c.Members, m)
	}
	return c, c.check()
}

// Fields of the documents.
var (
	setFields = []string{"_id", "version", "term", "members", "settings", "configsvr", "protocolVersion",
		"writeConcernMajorityJournalDefault", "replicaSetId"}
	memberFields = []string{"_id", "host", "arbiterOnly", "buildIndexes", "hidden", "priority", "tags", "votes",
		"slaveDelay", "secondaryDelaySecs", "horizons", "newlyAdded"}
)

// onlyFields refuses a document that has other fields than those.
func onlyFields(doc bson.Raw, fields []string, profile Profile, kind string) error {
	elements, err := doc.Elements()
	if err != nil {
		return err
	}
	for _, e := range elements {
		if !slices.Contains(fields, e.Key()) {
			return unknownField(profile, kind, e.Key())
		}
	}
	return nil
}

func unknownField(profile Profile, kind, name string) error {
	if profile.Wire < wire49 {
		return refuse(codeBadValue, "Unexpected field %s in replica set member configuration", name)
	}
	return refuse(codeUnknownField, "BSON field '%s.%s' is an unknown field.", kind, name)
}

// delayField is what the delay of a member is called; 5.0 renamed it.
func (p Profile) delayField() string {
	if p.Wire >= wire50 {
		return "secondaryDelaySecs"
	}
	return "slaveDelay"
}

func parseMember(doc bson.Raw, profile Profile) (Member, error) {
	m := Member{BuildIndexes: true, Votes: 1, Priority: 1}
	if err := onlyFields(doc, memberFields, profile, "MemberConfig"); err != nil {
		return m, err
	}
	id, ok := doc.Lookup("_id").AsInt64OK()
	if !ok || id < 0 || id > maxMemberID {
		return m, invalidConfig("_id field value of %d is out of range.", id)
	}
	m.ID = int32(id)
	host, ok := doc.Lookup("host").StringValueOK()
	if !ok || host == "" {
		return m, invalidConfig("Missing required field \"host\" of a replica set member configuration")
	}
	m.Host = withPort(host)
	m.ArbiterOnly = truth(doc.Lookup("arbiterOnly"), false)
	m.Hidden = truth(doc.Lookup("hidden"), false)
	m.BuildIndexes = truth(doc.Lookup("buildIndexes"), true)
	if m.ArbiterOnly {
		m.Priority = 0
	}
	if n, ok := doc.Lookup("priority").AsFloat64OK(); ok {
		m.Priority = n
	}
	if n, ok := doc.Lookup("votes").AsFloat64OK(); ok {
		m.Votes = int32(n)
	}
	for _, name := range []string{"slaveDelay", "secondaryDelaySecs"} {
		if n, ok := doc.Lookup(name).AsInt64OK(); ok {
			m.Delay = n
		}
	}
	if tags, ok := doc.Lookup("tags").DocumentOK(); ok && len(tags) > 5 {
		m.Tags = slices.Clone(tags)
	}
	return m, m.check()
}

// truth reads a switch as the server's configurations may write it.
func truth(v bson.RawValue, otherwise bool) bool {
	if b, ok := v.BooleanOK(); ok {
		return b
	}
	if n, ok := v.AsFloat64OK(); ok {
		return n != 0
	}
	return otherwise
}

// withPort adds the default port to a host without one.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(DefaultPort))
}

func (m Member) check() error {
	switch {
	case m.Priority < 0 || m.Priority > maxPriority:
		return invalidConfig("priority field value of %v is out of range", m.Priority)
	case m.ArbiterOnly && m.Priority > 1:
		return invalidConfig("Arbiter must have a priority of 0 or 1; found %v", m.Priority)
	case m.Votes != 0 && m.Votes != 1:
		return invalidConfig("votes field value is %d but must be 0 or 1", m.Votes)
	case m.Votes == 0 && m.Priority != 0:
		return invalidConfig("priority must be 0 when non-voting (votes:0)")
	case m.ArbiterOnly && m.Votes == 0:
		return invalidConfig("Arbiter must vote (cannot have 0 votes)")
	case m.ArbiterOnly && m.Tags != nil:
		return invalidConfig("Cannot set tags on arbiters.")
	case m.Hidden && m.Priority != 0 && !m.ArbiterOnly:
		return invalidConfig("priority must be 0 when hidden=true")
	case m.Delay > 0 && m.Priority != 0:
		return invalidConfig("priority must be 0 when slaveDelay is used")
	case m.Delay < 0:
		return invalidConfig("slaveDelay field value of %d seconds is out of range", m.Delay)
	case !m.BuildIndexes && m.Priority != 0:
		return invalidConfig("priority must be 0 when buildIndexes=false")
	}
	return nil
}

func (c SetConfig) check() error {
	if len(c.Members) == 0 || len(c.Members) > maxW {
		return invalidConfig("Replica set configuration contains %d members, but must have at least 1 and no more than  %d", len(c.Members), maxW)
	}
	voters, electable := 0, 0
	for i, m := range c.Members {
		for j, other := range c.Members[:i] {
			if m.ID == other.ID {
				return invalidConfig("Found two member configurations with same _id field, members.%d._id == members.%d._id == %d", j, i, m.ID)
			}
			if m.Host == other.Host {
				return invalidConfig("Found two member configurations with same host field, members.%d.host == members.%d.host == %s", j, i, m.Host)
			}
		}
		voters += int(m.Votes)
		if m.electable() {
			electable++
		}
	}
	switch {
	case voters == 0 || voters > maxVoters:
		return invalidConfig("Replica set configuration contains %d voting members, but must be at least 1 and no more than %d", voters, maxVoters)
	case electable == 0:
		return invalidConfig("Replica set configuration must contain at least one non-arbiter member with priority > 0")
	}
	return nil
}

// document is the member as replSetGetConfig tells it.
func (m Member) document(p Profile) bson.D {
	tags := any(bson.D{})
	if m.Tags != nil {
		tags = m.Tags
	}
	return bson.D{
		{Key: "_id", Value: m.ID},
		{Key: "host", Value: m.Host},
		{Key: "arbiterOnly", Value: m.ArbiterOnly},
		{Key: "buildIndexes", Value: m.BuildIndexes},
		{Key: "hidden", Value: m.Hidden},
		{Key: "priority", Value: m.Priority},
		{Key: "tags", Value: tags},
		{Key: p.delayField(), Value: m.Delay},
		{Key: "votes", Value: m.Votes},
	}
}

// told is what hello tells of a member that is not like most.
func (m Member) told(p Profile) bson.D {
	var out bson.D
	when := func(condition bool, key string, value any) {
		if condition {
			out = append(out, bson.E{Key: key, Value: value})
		}
	}
	when(m.ArbiterOnly, "arbiterOnly", true)
	when(m.Priority == 0 && !m.ArbiterOnly, "passive", true)
	when(m.Hidden, "hidden", true)
	when(!m.BuildIndexes, "buildIndexes", false)
	when(m.Delay > 0, p.delayField(), m.Delay)
	when(m.Tags != nil, "tags", m.Tags)
	return out
}

// layout is what hello tells of a set's members. It changes with the
// configuration alone, and nobody writes to it.
type layout struct {
	hosts, passives, arbiters []string // of the members that are not hidden
	bearing                   int      // members with data
	voters, writers           int      // voting members, and those of them with data
	version                   int32    // of the configuration
	servers                   []*Server
}

// majority is how many votes elect a primary.
func (l *layout) majority() int { return l.voters/2 + 1 }

func newLayout(version int32, servers []*Server) *layout {
	l := &layout{version: version, servers: slices.Clone(servers), hosts: []string{}}
	for _, s := range servers {
		m := s.member
		l.voters += int(m.Votes)
		if !m.ArbiterOnly {
			l.bearing++
			l.writers += int(m.Votes)
		}
		switch {
		case m.Hidden:
		case m.ArbiterOnly:
			l.arbiters = append(l.arbiters, m.Host)
		case m.Priority == 0:
			l.passives = append(l.passives, m.Host)
		default:
			l.hosts = append(l.hosts, m.Host)
		}
	}
	return l
}
