package embedded

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/server"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/internal/text/plural"
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

// kind is a kind of values in a configuration.
type kind struct {
	name string
	has  func(any) bool
}

var (
	boolean  = kind{"true or false", value.Is[bool]}
	number   = kind{"a number", func(v any) bool { return value.IsNumber(v) && !value.Is[bson.Decimal128](v) }}
	document = kind{"a document", value.Is[bson.D]}
)

// memberKeys are the keys of Config, and the kinds of their values.
var memberKeys = map[string]kind{"arbiterOnly": boolean, "buildIndexes": boolean, "hidden": boolean,
	"priority": number, "secondaryDelaySecs": number, "tags": document, "votes": number}

// ParseMember reads a member from Extended JSON: the fields of Config, and latencyMS.
func ParseMember(text string) (m Member, err error) {
	var doc bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
		return m, errors.New(`must be a document in Extended JSON, such as {"priority": 2}`)
	}
	for _, e := range doc {
		ms, whole := e.Value.(int32)
		switch kind, known := memberKeys[e.Key]; {
		case known && !kind.has(e.Value):
			return m, fmt.Errorf("%s must be %s", e.Key, kind.name)
		case known:
			m.Config = append(m.Config, e)
		case e.Key != "latencyMS":
			return m, fmt.Errorf("unknown key %q: it must be one of %s, latencyMS", e.Key,
				strings.Join(slices.Sorted(maps.Keys(memberKeys)), ", "))
		case !whole || ms < 0:
			return m, errors.New("latencyMS must be a non-negative number of milliseconds")
		default:
			m.Latency = time.Duration(ms) * time.Millisecond
		}
	}
	return m, nil
}

// members returns the configured members of a replica set. Their hosts are placeholders.
func (o *Options) members() ([]server.Member, error) {
	switch {
	case len(o.MemberConfigs) == 0:
		return nil, nil
	case o.Topology != ReplicaSet:
		return nil, fmt.Errorf("a %s has no members to configure", o.Topology.Name())
	case len(o.MemberConfigs) > o.Members:
		return nil, fmt.Errorf("settings for %s, but the replica set has %d",
			plural.Of(len(o.MemberConfigs), "member"), o.Members)
	}
	configs := append(slices.Clone(o.MemberConfigs), make([]Member, o.Members-len(o.MemberConfigs))...)
	var members bson.A
	for i, m := range configs {
		place := bson.D{{Key: "_id", Value: i}, {Key: "host", Value: fmt.Sprintf("h:%d", i+1)}}
		members = append(members, append(place, m.Config...))
	}
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: o.SetName}, {Key: "members", Value: members}})
	if err != nil {
		return nil, err
	}
	set, err := server.ParseSetConfig(doc)
	for i := range set.Members {
		set.Members[i].Latency = configs[i].Latency
	}
	return set.Members, err
}
