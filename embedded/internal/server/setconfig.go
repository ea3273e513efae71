package server

import (
	"net"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// Member is the configuration of a member, with the fields of replSetInitiate.
type Member struct {
	ID           int32    `bson:"_id"`
	Host         string   `bson:"host"` // host:port, as clients see it
	ArbiterOnly  bool     `bson:"arbiterOnly"`
	BuildIndexes bool     `bson:"buildIndexes"`
	Hidden       bool     `bson:"hidden"`
	Priority     float64  `bson:"priority"`
	Votes        int32    `bson:"votes"`
	Tags         bson.Raw `bson:"tags,omitempty"` // nil without tags
	// SecondaryDelaySecs only affects lastWrite in hello.
	SecondaryDelaySecs int64 `bson:"secondaryDelaySecs,omitempty"`
	// Latency delays each reply of the member.
	Latency time.Duration `bson:"-"`
}

// NewMember returns a member with the default configuration.
func NewMember(id int, host string) Member {
	return Member{ID: int32(id), Host: host, BuildIndexes: true, Priority: 1, Votes: 1}
}

// UnmarshalBSON reads a member. Missing fields have the server's defaults.
func (m *Member) UnmarshalBSON(doc []byte) error {
	type fields Member // without UnmarshalBSON
	f := fields(NewMember(-1, ""))
	if value.FlagAt(doc, "arbiterOnly") {
		f.Priority = 0
	}
	err := bson.Unmarshal(doc, &f)
	if *m = Member(f); len(m.Tags) <= emptyDocument {
		m.Tags = nil
	}
	if _, _, noPort := net.SplitHostPort(m.Host); noPort != nil && m.Host != "" {
		m.Host = net.JoinHostPort(m.Host, strconv.Itoa(DefaultPort))
	}
	return err
}

// electable reports whether the member may become primary.
func (m Member) electable() bool { return m.Priority > 0 && !m.ArbiterOnly }

// SetConfig is the configuration of a replica set.
type SetConfig struct {
	id           bson.ObjectID // replicaSetId
	Name         string        `bson:"_id"`
	Version      int32         `bson:"version"` // 0 if missing
	ConfigServer bool          `bson:"configsvr,omitempty"`
	Members      []Member      `bson:"members"`
	Settings     bson.D        `bson:"settings,omitempty"`
}

// defaultSettings are the settings of a replica set (MongoDB manual, "Replica Set Configuration").
var defaultSettings = value.Doc("chainingAllowed", true, "heartbeatIntervalMillis", int32(2000),
	"heartbeatTimeoutSecs", int32(10), "electionTimeoutMillis", int32(10000), "catchUpTimeoutMillis", int32(-1),
	"catchUpTakeoverDelayMillis", int32(30000), "getLastErrorModes", bson.D{},
	"getLastErrorDefaults", value.Doc("w", int32(1), "wtimeout", int32(0)))

// document returns the configuration as replSetGetConfig does.
func (c *SetConfig) document(x *exchange, term int64) bson.D {
	delay, members := "secondaryDelaySecs", bson.A{}
	if !x.view.Has.SecondaryDelay {
		delay = "slaveDelay"
	}
	for _, m := range c.Members {
		tags := bson.D{}
		if m.Tags != nil {
			tags = value.Must(m.Tags)
		}
		members = append(members, value.Doc("_id", m.ID, "host", m.Host, "arbiterOnly", m.ArbiterOnly,
			"buildIndexes", m.BuildIndexes, "hidden", m.Hidden, "priority", m.Priority, "tags", tags,
			delay, m.SecondaryDelaySecs, "votes", m.Votes))
	}
	settings := slices.Clone(defaultSettings)
	for _, e := range c.Settings {
		settings = value.Set(settings, e.Key, e.Value)
	}
	out := value.Doc("_id", c.Name, "version", c.Version)
	out = value.AddIf(out, x.view.Has.Hello, "term", int32(term))
	out = value.AddIf(out, c.ConfigServer, "configsvr", true)
	return value.Append(out, "members", members, "protocolVersion", int64(1),
		"writeConcernMajorityJournalDefault", true, "settings", value.Append(settings, "replicaSetId", c.id))
}

// DefaultPort is the default port of mongod and mongos.
const DefaultPort = 27017

// ParseSetConfig reads and validates the document of replSetInitiate. Its errors are the server's.
func ParseSetConfig(doc bson.Raw) (SetConfig, error) {
	var c SetConfig
	if err := bson.Unmarshal(doc, &c); err != nil {
		return c, fault.Errorf(fault.InvalidReplicaSetConfig, "cannot parse the configuration: %s", err)
	}
	var p fault.First
	refuse := func(when bool, format string, args ...any) {
		p.Refuse(when, fault.InvalidReplicaSetConfig, format, args...)
	}
	for i, m := range c.Members {
		same := func(o Member) bool { return o.ID == m.ID || o.Host == m.Host }
		refuse(m.ID < 0 || m.Host == "" || slices.ContainsFunc(c.Members[:i], same),
			"each member must have a unique _id and a unique host")
	}
	refuse(len(c.Members) == 0 || len(c.Members) > maxW,
		"Replica set configuration contains %d members, but must have at least 1 and no more than %d", len(c.Members), maxW)
	refuse(!slices.ContainsFunc(c.Members, Member.electable),
		"Replica set configuration must contain at least one non-arbiter member with priority > 0")
	return c, p.Err
}

// hosts returns what hello reports about the members, without hidden ones.
func (c *SetConfig) hosts() (hosts, passives, arbiters []string) {
	hosts = []string{}
	for _, m := range c.Members {
		switch {
		case m.Hidden:
		case m.ArbiterOnly:
			arbiters = append(arbiters, m.Host)
		case m.Priority == 0:
			passives = append(passives, m.Host)
		default:
			hosts = append(hosts, m.Host)
		}
	}
	return hosts, passives, arbiters
}

func (c *SetConfig) dataBearing() (n int) {
	for _, m := range c.Members {
		if !m.ArbiterOnly {
			n++
		}
	}
	return n
}
