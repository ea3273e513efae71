package embedded

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/server"
)

// Member configures a member of a replica set.
type Member struct {
	// Config is the member's document for replSetInitiate, without _id and host: tags, priority, hidden,
	// arbiterOnly, votes, buildIndexes, secondaryDelaySecs. All members share their data: a delayed member only
	// reports an older lastWrite in hello.
	Config bson.D
	// Latency delays each reply of the member.
	Latency time.Duration
}

var memberKeys = []string{"arbiterOnly", "buildIndexes", "hidden", "priority", "secondaryDelaySecs", "tags", "votes"}

// ParseMember reads a member from Extended JSON: the fields of Config, and latencyMS.
func ParseMember(text string) (m Member, err error) {
	var doc bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		return m, fmt.Errorf("not a document in Extended JSON: %w", err)
	}
	for _, e := range doc {
		ms, number := e.Value.(int32)
		switch {
		case slices.Contains(memberKeys, e.Key):
			m.Config = append(m.Config, e)
		case e.Key != "latencyMS":
			return m, fmt.Errorf("unknown key %q", e.Key)
		case !number || ms < 0:
			return m, errors.New("latencyMS must be a non-negative number of milliseconds")
		default:
			m.Latency = time.Duration(ms) * time.Millisecond
		}
	}
	return m, nil
}

func (o *Options) readSet() ([]server.Member, error) {
	switch {
	case len(o.MemberConfigs) == 0:
		return nil, nil
	case o.Topology != ReplicaSet:
		return nil, fmt.Errorf("a %s has no members to configure", o.Topology)
	case len(o.MemberConfigs) > o.Members:
		return nil, fmt.Errorf("%d members are configured, but the replica set has %d", len(o.MemberConfigs), o.Members)
	}
	var members bson.A
	for i := range o.Members {
		member := bson.D{{Key: "_id", Value: i}, {Key: "host", Value: fmt.Sprintf("h:%d", i+1)}}
		if i < len(o.MemberConfigs) {
			member = append(member, o.MemberConfigs[i].Config...)
		}
		members = append(members, member)
	}
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: o.SetName}, {Key: "members", Value: members}})
	if err != nil {
		return nil, err
	}
	set, err := server.ParseSetConfig(doc)
	return set.Members, err
}

func (d *Deployment) shape(m *server.Member, p *server.Process) {
	if configured := d.options.MemberConfigs; int(m.ID) < len(configured) {
		host := m.Host
		*m, p.Latency = d.set[m.ID], configured[m.ID].Latency
		m.Host = host
	}
}
